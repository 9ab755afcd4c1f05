"""The sentences that the product itself says in an answer, in the question's language."""

from __future__ import annotations

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
}
NO_MODEL = {
    "en": "No language model is configured, so these are the documents' own words.",
    "nl": "Er is geen taalmodel ingesteld; dit zijn de woorden van de documenten zelf.",
    "de": "Es ist kein Sprachmodell eingerichtet; dies sind die Worte der Dokumente selbst.",
    "ko": "언어 모델이 설정되어 있지 않아 문서의 내용을 그대로 인용합니다.",
}
#: Opens the quotations that stand in for an answer whose model failed.
MODEL_FAILED = {
    "en": "The language model did not answer, so these are the documents' own words.",
    "nl": "Het taalmodel gaf geen antwoord; dit zijn de woorden van de documenten zelf.",
    "de": "Das Sprachmodell hat nicht geantwortet; dies sind die Worte der Dokumente selbst.",
    "ko": "언어 모델이 응답하지 않아 문서의 내용을 그대로 인용합니다.",
}


def phrase(phrases: dict[str, str], language: str) -> str:
    """The sentence in a language (ISO 639-1, "pt-BR" is read as "pt"), in English where there is none."""
    return phrases.get(language.split("-")[0].lower(), phrases["en"])
