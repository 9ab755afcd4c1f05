"""The sentences that the product itself says in an answer, in the question's language."""

from __future__ import annotations

from collections.abc import Iterable

UNCITED = "This answer names no source. Compare it with the passages below."
NOTHING_FOUND = {
    "en": "The documents do not answer this question. The passages below come closest to it.",
    "nl": "De documenten beantwoorden deze vraag niet. De passages hieronder komen er het dichtst bij.",
    "de": "Die Dokumente beantworten diese Frage nicht. Die Stellen unten kommen ihr am nächsten.",
    "fr": "Les documents ne répondent pas à cette question. Les passages ci-dessous s'en approchent le plus.",
    "es": "Los documentos no responden a esta pregunta. Los pasajes de abajo son los más cercanos.",
    "it": "I documenti non rispondono a questa domanda. I passaggi qui sotto sono i più vicini.",
    "pt": "Os documentos não respondem a esta pergunta. Os trechos abaixo são os mais próximos.",
    "pl": "Dokumenty nie odpowiadają na to pytanie. Poniższe fragmenty są mu najbliższe.",
    "ko": "문서에서 이 질문에 대한 답을 찾지 못했습니다. 아래는 가장 가까운 내용입니다.",
    "ja": "この質問への答えは文書の中に見つかりませんでした。以下は最も近い箇所です。",
    "zh": "文档中没有这个问题的答案。以下是最接近的内容。",
    "ar": "لا تجيب المستندات عن هذا السؤال. المقاطع أدناه هي الأقرب إليه.",
    "tr": "Belgeler bu soruyu yanıtlamıyor. Aşağıdaki bölümler soruya en yakın olanlardır.",
}
NOTHING_NEAR = {
    "en": "The documents do not answer this question, and no passage comes near it.",
    "nl": "De documenten beantwoorden deze vraag niet, en geen enkele passage komt in de buurt.",
    "de": "Die Dokumente beantworten diese Frage nicht, und keine Stelle kommt ihr nahe.",
    "fr": "Les documents ne répondent pas à cette question, et aucun passage ne s'en approche.",
    "es": "Los documentos no responden a esta pregunta y ningún pasaje se le acerca.",
    "it": "I documenti non rispondono a questa domanda e nessun passaggio vi si avvicina.",
    "pt": "Os documentos não respondem a esta pergunta, e nenhum trecho se aproxima dela.",
    "pl": "Dokumenty nie odpowiadają na to pytanie i żaden fragment nie jest mu bliski.",
    "ko": "문서에서 이 질문에 대한 답을 찾지 못했으며, 가까운 내용도 없습니다.",
    "ja": "この質問への答えは文書の中に見つからず、近い箇所もありませんでした。",
    "zh": "文档中没有这个问题的答案，也没有接近的内容。",
    "ar": "لا تجيب المستندات عن هذا السؤال، ولا يوجد فيها مقطع قريب منه.",
    "tr": "Belgeler bu soruyu yanıtlamıyor ve hiçbir bölüm ona yaklaşmıyor.",
}
#: Opens quotations of which it is not sure that they answer.
CLOSEST = {
    "en": "This is the closest I found.",
    "nl": "Dit is wat er het dichtst bij komt.",
    "de": "Das kommt der Frage am nächsten.",
    "fr": "Voici ce que j'ai trouvé de plus proche.",
    "es": "Esto es lo más cercano que he encontrado.",
    "it": "Questo è quanto di più vicino ho trovato.",
    "pt": "Isto é o mais próximo que encontrei.",
    "pl": "Oto najbliższe, co udało mi się znaleźć.",
    "ko": "가장 가까운 내용은 다음과 같습니다.",
    "ja": "最も近い内容は次のとおりです。",
    "zh": "这是我找到的最接近的内容。",
    "ar": "هذا أقرب ما وجدته.",
    "tr": "Bulduğum en yakın bölüm bu.",
}
NO_MODEL = {
    "en": "No language model is configured, so these are the documents' own words.",
    "nl": "Er is geen taalmodel ingesteld; dit zijn de woorden van de documenten zelf.",
    "de": "Es ist kein Sprachmodell eingerichtet; dies sind die Worte der Dokumente selbst.",
    "fr": "Aucun modèle de langage n'est configuré ; ce sont donc les mots mêmes des documents.",
    "es": "No hay ningún modelo de lenguaje configurado; estas son las palabras de los propios documentos.",
    "it": "Nessun modello linguistico è configurato; queste sono le parole dei documenti stessi.",
    "pt": "Nenhum modelo de linguagem está configurado; estas são as palavras dos próprios documentos.",
    "pl": "Nie skonfigurowano modelu językowego; są to słowa samych dokumentów.",
    "ko": "언어 모델이 설정되어 있지 않아 문서의 내용을 그대로 인용합니다.",
    "ja": "言語モデルが設定されていないため、文書の記述をそのまま示します。",
    "zh": "未配置语言模型，以下为文档原文。",
    "ar": "لم يُضبط أي نموذج لغوي، ولذلك هذه كلمات المستندات نفسها.",
    "tr": "Bir dil modeli ayarlanmamış; bunlar belgelerin kendi sözleridir.",
}
#: Opens the quotations that stand in for an answer whose model failed.
MODEL_FAILED = {
    "en": "The language model did not answer, so these are the documents' own words.",
    "nl": "Het taalmodel gaf geen antwoord; dit zijn de woorden van de documenten zelf.",
    "de": "Das Sprachmodell hat nicht geantwortet; dies sind die Worte der Dokumente selbst.",
    "fr": "Le modèle de langage n'a pas répondu ; ce sont donc les mots mêmes des documents.",
    "es": "El modelo de lenguaje no respondió; estas son las palabras de los propios documentos.",
    "it": "Il modello linguistico non ha risposto; queste sono le parole dei documenti stessi.",
    "pt": "O modelo de linguagem não respondeu; estas são as palavras dos próprios documentos.",
    "pl": "Model językowy nie odpowiedział; są to słowa samych dokumentów.",
    "ko": "언어 모델이 응답하지 않아 문서의 내용을 그대로 인용합니다.",
    "ja": "言語モデルが応答しなかったため、文書の記述をそのまま示します。",
    "zh": "语言模型没有回答，以下为文档原文。",
    "ar": "لم يُجب النموذج اللغوي، ولذلك هذه كلمات المستندات نفسها.",
    "tr": "Dil modeli yanıt vermedi; bunlar belgelerin kendi sözleridir.",
}
#: Opens the quotations that stand in for an answer that was withdrawn.
NOT_THE_MODELS = {
    "en": "The language model's answer could not be used, so these are the documents' own words.",
    "nl": "Het antwoord van het taalmodel was niet bruikbaar; dit zijn de woorden van de documenten zelf.",
    "de": "Die Antwort des Sprachmodells war nicht brauchbar; dies sind die Worte der Dokumente selbst.",
    "fr": "La réponse du modèle de langue n'était pas utilisable ; voici les mots des documents eux-mêmes.",
    "es": "La respuesta del modelo de lenguaje no era utilizable; estas son las palabras de los propios documentos.",
    "it": "La risposta del modello linguistico non era utilizzabile; queste sono le parole dei documenti stessi.",
    "pt": "A resposta do modelo de linguagem não era utilizável; estas são as palavras dos próprios documentos.",
    "pl": "Odpowiedź modelu językowego nie nadawała się do użycia; oto słowa samych dokumentów.",
    "ko": "언어 모델의 답변을 쓸 수 없어 문서의 내용을 그대로 인용합니다.",
    "ja": "言語モデルの回答は使えなかったため、文書の言葉をそのまま引用します。",
    "zh": "语言模型的回答无法使用，以下是文档的原文。",
    "ar": "لم تكن إجابة النموذج اللغوي صالحة، وهذه كلمات المستندات نفسها.",
    "tr": "Dil modelinin yanıtı kullanılamadı; bunlar belgelerin kendi sözleridir.",
}


#: Stands above quotations in another language than the question's.
QUOTED_AS_THEY_STAND = {
    "en": "These passages are in {languages}; they are quoted as they stand.",
    "nl": "Deze passages zijn in het {languages}; ze worden letterlijk geciteerd.",
    "de": "Diese Stellen sind auf {languages}; sie werden im Wortlaut zitiert.",
    "fr": "Ces passages sont en {languages} ; ils sont cités tels quels.",
    "es": "Estos pasajes están en {languages}; se citan tal cual.",
    "it": "Questi passaggi sono in {languages}; sono citati così come sono.",
    "pt": "Estes trechos estão em {languages}; são citados tal como estão.",
    "pl": "Język tych fragmentów: {languages}; są cytowane dosłownie.",
    "ko": "아래 내용의 원문 언어는 {languages}이며, 원문 그대로 인용합니다.",
    "ja": "以下は{languages}の文書からの引用で、原文のまま示します。",
    "zh": "以下段落的语言为{languages}，按原文引用。",
    "ar": "لغة هذه المقاطع: {languages}، وهي مقتبسة كما هي.",
    "tr": "Bu bölümlerin dili: {languages}; olduğu gibi alıntılanmıştır.",
}
#: The names of languages in each language, in the order of `NAMED`.
NAMED = ("en", "nl", "de", "fr", "es", "it", "pt", "pl", "ko", "ja", "zh", "ar", "tr")
NAMES = {
    "en": "English Dutch German French Spanish Italian Portuguese Polish Korean Japanese Chinese Arabic Turkish",
    "nl": "Engels Nederlands Duits Frans Spaans Italiaans Portugees Pools Koreaans Japans Chinees Arabisch Turks",
    "de": "Englisch Niederländisch Deutsch Französisch Spanisch Italienisch Portugiesisch Polnisch "
    "Koreanisch Japanisch Chinesisch Arabisch Türkisch",
    "fr": "anglais néerlandais allemand français espagnol italien portugais polonais coréen japonais chinois arabe "
    "turc",
    "es": "inglés neerlandés alemán francés español italiano portugués polaco coreano japonés chino árabe turco",
    "it": "inglese olandese tedesco francese spagnolo italiano portoghese polacco coreano giapponese cinese arabo "
    "turco",
    "pt": "inglês holandês alemão francês espanhol italiano português polaco coreano japonês chinês árabe turco",
    "pl": "angielski niderlandzki niemiecki francuski hiszpański włoski portugalski polski koreański japoński "
    "chiński arabski turecki",
    "ko": "영어 네덜란드어 독일어 프랑스어 스페인어 이탈리아어 포르투갈어 폴란드어 한국어 일본어 중국어 아랍어 "
    "튀르키예어",
    "ja": "英語 オランダ語 ドイツ語 フランス語 スペイン語 イタリア語 ポルトガル語 ポーランド語 韓国語 日本語 "
    "中国語 アラビア語 トルコ語",
    "zh": "英语 荷兰语 德语 法语 西班牙语 意大利语 葡萄牙语 波兰语 韩语 日语 中文 阿拉伯语 土耳其语",
    "ar": "الإنجليزية الهولندية الألمانية الفرنسية الإسبانية الإيطالية البرتغالية البولندية "
    "الكورية اليابانية الصينية العربية التركية",
    "tr": "İngilizce Felemenkçe Almanca Fransızca İspanyolca İtalyanca Portekizce Lehçe Korece Japonca Çince Arapça "
    "Türkçe",
}


def quoted_as_they_stand(languages: Iterable[str], language: str) -> str:
    """Say in the asker's language which other languages the quotations are in; empty when they are in none."""
    own = language.split("-")[0].lower()
    names = dict(zip(NAMED, NAMES.get(own, NAMES["en"]).split(), strict=True))
    others = [names[code] for code in dict.fromkeys(languages) if code in names and code != own]
    return phrase(QUOTED_AS_THEY_STAND, language).format(languages=", ".join(others)) if others and own else ""


def phrase(phrases: dict[str, str], language: str) -> str:
    """The sentence in a language (ISO 639-1, "pt-BR" is read as "pt"), in English where there is none."""
    return phrases.get(language.split("-")[0].lower(), phrases["en"])
