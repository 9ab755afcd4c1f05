"""Fixed sentences in an answer, in the question's language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from uuid import UUID

from rag.answering.citations import SHOWN_GROUP
from rag.language import N_
from rag.types import Citation

UNCITED = N_("This answer names no source. Compare it with the passages below.")
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
#: Warns about a document used in the answer after its last valid day.
NO_LONGER_VALID = {
    "en": "“{title}” was valid until {day}. Check whether it still holds.",
    "nl": "“{title}” was geldig tot en met {day}. Controleer of het nog klopt.",
    "de": "„{title}“ galt bis {day}. Prüfen Sie, ob es noch zutrifft.",
    "fr": "« {title} » était valable jusqu'au {day}. Vérifiez s'il l'est encore.",
    "es": "«{title}» fue válido hasta el {day}. Compruebe si sigue vigente.",
    "it": "«{title}» era valido fino al {day}. Verifichi se lo è ancora.",
    "pt": "“{title}” foi válido até {day}. Confirme se ainda se aplica.",
    "pl": "„{title}” obowiązywał do {day}. Sprawdź, czy nadal obowiązuje.",
    "ko": "“{title}” 문서의 유효 기간은 {day}까지였습니다. 아직 유효한지 확인하세요.",
    "ja": "「{title}」の有効期限は{day}でした。まだ有効か確認してください。",
    "zh": "《{title}》的有效期至{day}。请确认是否仍然有效。",
    "ar": "كان «{title}» صالحًا حتى {day}. تحقق مما إذا كان لا يزال ساريًا.",
    "tr": "“{title}” {day} tarihine kadar geçerliydi. Hâlâ geçerli olup olmadığını kontrol edin.",
}
NOT_YET_VALID = {
    "en": "“{title}” is valid from {day} on.",
    "nl": "“{title}” is geldig vanaf {day}.",
    "de": "„{title}“ gilt erst ab {day}.",
    "fr": "« {title} » est valable à partir du {day}.",
    "es": "«{title}» es válido a partir del {day}.",
    "it": "«{title}» è valido a partire dal {day}.",
    "pt": "“{title}” é válido a partir de {day}.",
    "pl": "„{title}” obowiązuje od {day}.",
    "ko": "“{title}” 문서는 {day}부터 유효합니다.",
    "ja": "「{title}」は{day}から有効です。",
    "zh": "《{title}》自{day}起生效。",
    "ar": "يسري «{title}» اعتبارًا من {day}.",
    "tr": "“{title}” {day} tarihinden itibaren geçerlidir.",
}
#: Names an earlier version used in the answer, because the question names a past day.
EARLIER_VERSION = {
    "en": "On {day}, version {version} of “{title}” was valid. There is a newer one.",
    "nl": "Op {day} gold versie {version} van “{title}”. Er is een nieuwere versie.",
    "de": "Am {day} galt Version {version} von „{title}“. Es gibt eine neuere.",
    "fr": "Le {day}, la version {version} de « {title} » était valable. Il en existe une plus récente.",
    "es": "El {day} estaba vigente la versión {version} de «{title}». Hay una más reciente.",
    "it": "Il {day} era valida la versione {version} di «{title}». Ne esiste una più recente.",
    "pt": "Em {day} valia a versão {version} de “{title}”. Existe uma mais recente.",
    "pl": "W dniu {day} obowiązywała wersja {version} dokumentu „{title}”. Istnieje nowsza.",
    "ko": "{day}에는 “{title}” 문서의 버전 {version}이 유효했습니다. 더 새로운 버전이 있습니다.",
    "ja": "{day}には「{title}」のバージョン{version}が有効でした。新しいバージョンがあります。",
    "zh": "{day}有效的是《{title}》的第{version}版。现有更新的版本。",
    "ar": "في {day} كان الإصدار {version} من «{title}» ساريًا. يوجد إصدار أحدث.",
    "tr": "{day} tarihinde “{title}” belgesinin {version}. sürümü geçerliydi. Daha yeni bir sürüm var.",
}
#: About the version valid today, when the published version begins later.
NEWER_VERSION = {
    "en": "This is version {version} of “{title}”. A newer one is valid from {day} on.",
    "nl": "Dit is versie {version} van “{title}”. Een nieuwere is geldig vanaf {day}.",
    "de": "Das ist Version {version} von „{title}“. Eine neuere gilt ab {day}.",
    "fr": "Ceci est la version {version} de « {title} ». Une plus récente est valable à partir du {day}.",
    "es": "Esta es la versión {version} de «{title}». Una más reciente es válida a partir del {day}.",
    "it": "Questa è la versione {version} di «{title}». Una più recente è valida a partire dal {day}.",
    "pt": "Esta é a versão {version} de “{title}”. Uma mais recente é válida a partir de {day}.",
    "pl": "To jest wersja {version} dokumentu „{title}”. Nowsza obowiązuje od {day}.",
    "ko": "“{title}” 문서의 버전 {version}입니다. 더 새로운 버전은 {day}부터 유효합니다.",
    "ja": "これは「{title}」のバージョン{version}です。新しいバージョンは{day}から有効です。",
    "zh": "这是《{title}》的第{version}版。更新的版本自{day}起生效。",
    "ar": "هذا هو الإصدار {version} من «{title}». يسري إصدار أحدث اعتبارًا من {day}.",
    "tr": "Bu, “{title}” belgesinin {version}. sürümüdür. Daha yeni bir sürüm {day} tarihinden itibaren geçerlidir.",
}
#: Today's version, if a question names a coming day and no stored version starts by then.
STILL_VALID = {
    "en": "This is version {version} of “{title}”. No other version kept here begins by {day}.",
    "nl": "Dit is versie {version} van “{title}”. Geen andere hier bewaarde versie begint uiterlijk op {day}.",
    "de": "Das ist Version {version} von „{title}“. Keine andere hier aufbewahrte Version beginnt bis {day}.",
    "fr": "Ceci est la version {version} de « {title} ». Aucune autre version gardée ici ne commence d'ici au {day}.",
    "es": "Esta es la versión {version} de «{title}». Ninguna otra versión guardada aquí empieza hasta el {day}.",
    "it": "Questa è la versione {version} di «{title}». Nessun'altra versione conservata qui inizia entro il {day}.",
    "pt": "Esta é a versão {version} de “{title}”. Nenhuma outra versão guardada aqui começa até {day}.",
    "pl": "To jest wersja {version} dokumentu „{title}”. Żadna inna wersja tutaj nie zaczyna się do {day}.",
    "ko": "“{title}” 문서의 버전 {version}입니다. {day}까지 시작되는 다른 버전은 여기에 없습니다.",
    "ja": "これは「{title}」のバージョン{version}です。{day}までに始まる別のバージョンはここにありません。",
    "zh": "这是《{title}》的第{version}版。此处没有在{day}之前开始生效的其他版本。",
    "ar": "هذا هو الإصدار {version} من «{title}». لا يبدأ أي إصدار آخر محفوظ هنا حتى {day}.",
    "tr": "Bu, “{title}” belgesinin {version}. sürümüdür. Burada {day} tarihine kadar başlayan başka bir sürüm yok.",
}
#: Introduces the first version with the rule, if the version has a first day.
FIRST_SAID = {
    "en": "Version {version} of “{title}”, valid from {day}, is the first one kept here that says so:",
    "nl": "Versie {version} van “{title}”, geldig vanaf {day}, is de eerste hier bewaarde die dit zegt:",
    "de": "Version {version} von „{title}“, gültig ab {day}, ist die erste hier aufbewahrte, die das sagt:",
    "fr": "La version {version} de « {title} », valable à partir du {day}, est la première conservée ici qui le dit :",
    "es": "La versión {version} de «{title}», válida a partir del {day}, es la primera guardada aquí que lo dice:",
    "it": "La versione {version} di «{title}», valida dal {day}, è la prima conservata qui che lo dice:",
    "pt": "A versão {version} de “{title}”, válida a partir de {day}, é a primeira guardada aqui que o diz:",
    "pl": "Wersja {version} dokumentu „{title}”, obowiązująca od {day}, jest pierwszą przechowywaną tu, która to mówi:",
    "ko": "{day}부터 유효한 “{title}” 문서의 버전 {version}이 여기에 보관된 버전 중 처음으로 이렇게 말합니다:",
    "ja": "ここに保管されている版では、{day}から有効な「{title}」のバージョン{version}が初めてこう述べています。",
    "zh": "自{day}起生效的《{title}》第{version}版是此处保存的版本中最早这样规定的：",
    "ar": "الإصدار {version} من «{title}»، الساري من {day}، هو أول إصدار محفوظ هنا يقول ذلك:",
    "tr": "{day} tarihinden itibaren geçerli olan “{title}” belgesinin {version}. "
    "sürümü, burada saklananlar arasında bunu söyleyen ilk sürümdür:",
}
#: The first version with the rule, without a first day.
FIRST_PUBLISHED = {
    "en": "Version {version} of “{title}” is the first one that says so. No "
    "first day is set for it; it was published here on {day}.",
    "nl": "Versie {version} van “{title}” is de eerste die dit zegt. Er is geen "
    "eerste dag voor ingesteld; ze is hier op {day} gepubliceerd.",
    "de": "Version {version} von „{title}“ ist die erste, die das sagt. Ein erster Tag ist "
    "für sie nicht eingetragen; veröffentlicht wurde sie hier am {day}.",
    "fr": "La version {version} de « {title} » est la première qui le dit. Aucun premier "
    "jour n'est indiqué pour elle ; elle a été publiée ici le {day}.",
    "es": "La versión {version} de «{title}» es la primera que lo dice. No "
    "tiene un primer día indicado; se publicó aquí el {day}.",
    "it": "La versione {version} di «{title}» è la prima che lo dice. Non ha un "
    "primo giorno indicato; è stata pubblicata qui il {day}.",
    "pt": "A versão {version} de “{title}” é a primeira que o diz. Não tem "
    "um primeiro dia indicado; foi publicada aqui em {day}.",
    "pl": "Wersja {version} dokumentu „{title}” jest pierwszą, która to mówi. Nie "
    "ma podanego pierwszego dnia; opublikowano ją tutaj {day}.",
    "ko": "“{title}” 문서의 버전 {version}이 처음으로 이렇게 말합니다. "
    "시작일은 정해져 있지 않으며 {day}에 여기에 게시되었습니다.",
    "ja": "「{title}」のバージョン{version}が初めてこう述べています。"
    "開始日は設定されておらず、ここでは{day}に公開されました。",
    "zh": "《{title}》第{version}版最早这样规定。该版没有设定生效日期，于{day}在此发布。",
    "ar": "الإصدار {version} من «{title}» هو أول من يقول ذلك. لم يُحدد له يوم أول، وقد نُشر هنا في {day}.",
    "tr": "Bunu söyleyen ilk sürüm, “{title}” belgesinin {version}. sürümüdür. Bu sürüm için "
    "bir ilk gün belirtilmemiştir; burada {day} tarihinde yayımlanmıştır.",
}
#: The oldest version already has the rule and has no first day.
OLDEST_SAYS = {
    "en": "The documents do not say since when. The oldest version of “{title}” that "
    "is kept here already says so; it was published here on {day}.",
    "nl": "De documenten zeggen niet sinds wanneer. De oudste hier bewaarde versie "
    "van “{title}” zegt dit al; ze is hier op {day} gepubliceerd.",
    "de": "Die Dokumente sagen nicht, seit wann. Schon die älteste hier aufbewahrte Version "
    "von „{title}“ sagt das; veröffentlicht wurde sie hier am {day}.",
    "fr": "Les documents ne disent pas depuis quand. La plus ancienne version de « {title} "
    "» conservée ici le dit déjà ; elle a été publiée ici le {day}.",
    "es": "Los documentos no dicen desde cuándo. La versión más antigua de "
    "«{title}» guardada aquí ya lo dice; se publicó aquí el {day}.",
    "it": "I documenti non dicono da quando. La versione più vecchia di «{title}» "
    "conservata qui lo dice già; è stata pubblicata qui il {day}.",
    "pt": "Os documentos não dizem desde quando. A versão mais antiga de “{title}” "
    "guardada aqui já o diz; foi publicada aqui em {day}.",
    "pl": "Dokumenty nie mówią, od kiedy. Mówi to już najstarsza przechowywana tu "
    "wersja dokumentu „{title}”; opublikowano ją tutaj {day}.",
    "ko": "문서에는 언제부터인지 나와 있지 않습니다. 여기에 보관된 “{title}” 문서의 가장 오래된 "
    "버전에 이미 이 내용이 있으며, 그 버전은 {day}에 여기에 게시되었습니다.",
    "ja": "いつからかは文書に書かれていません。ここに保管されている「{title}」の最も古い版がすでにこう述べており、"
    "その版はここで{day}に公開されました。",
    "zh": "文档没有说明从何时开始。此处保存的《{title}》最早版本已经这样规定，该版于{day}在此发布。",
    "ar": "لا تذكر المستندات منذ متى. أقدم إصدار محفوظ هنا من «{title}» يقول ذلك بالفعل، وقد نُشر هنا في {day}.",
    "tr": "Belgeler ne zamandan beri olduğunu söylemiyor. “{title}” belgesinin burada saklanan en "
    "eski sürümü bunu zaten söylüyor; burada {day} tarihinde yayımlanmıştır.",
}
#: The version before the first version with the rule.
SAID_BEFORE = {
    "en": "Version {version}, the one before, said:",
    "nl": "Versie {version}, die daarvoor, zei:",
    "de": "Version {version}, die davor, sagte:",
    "fr": "La version {version}, la précédente, disait :",
    "es": "La versión {version}, la anterior, decía:",
    "it": "La versione {version}, la precedente, diceva:",
    "pt": "A versão {version}, a anterior, dizia:",
    "pl": "Wersja {version}, poprzednia, mówiła:",
    "ko": "그 이전의 버전 {version}의 내용:",
    "ja": "その前のバージョン{version}の記述：",
    "zh": "此前的第{version}版写道：",
    "ar": "الإصدار {version} السابق له قال:",
    "tr": "Bir önceki sürüm ({version}) şöyle diyordu:",
}
NOT_SAID_BEFORE = {
    "en": "Version {version}, the one before, does not say it.",
    "nl": "Versie {version}, die daarvoor, zegt het niet.",
    "de": "Version {version}, die davor, sagt es nicht.",
    "fr": "La version {version}, la précédente, ne le dit pas.",
    "es": "La versión {version}, la anterior, no lo dice.",
    "it": "La versione {version}, la precedente, non lo dice.",
    "pt": "A versão {version}, a anterior, não o diz.",
    "pl": "Wersja {version}, poprzednia, tego nie mówi.",
    "ko": "그 이전의 버전 {version}에는 이 내용이 없습니다.",
    "ja": "その前のバージョン{version}にはこの記述がありません。",
    "zh": "此前的第{version}版没有这样规定。",
    "ar": "الإصدار {version} السابق له لا يقول ذلك.",
    "tr": "Bir önceki sürüm ({version}) bunu söylemiyor.",
}
#: Introduces today's version, if its rule is different.
SAID_TODAY = {
    "en": "Version {version}, which is valid today, says:",
    "nl": "Versie {version}, die vandaag geldig is, zegt:",
    "de": "Version {version}, die heute gilt, sagt:",
    "fr": "La version {version}, valable aujourd'hui, dit :",
    "es": "La versión {version}, vigente hoy, dice:",
    "it": "La versione {version}, valida oggi, dice:",
    "pt": "A versão {version}, válida hoje, diz:",
    "pl": "Wersja {version}, obowiązująca dzisiaj, mówi:",
    "ko": "오늘 유효한 버전 {version}의 내용:",
    "ja": "現在有効なバージョン{version}の記述：",
    "zh": "今天有效的第{version}版写道：",
    "ar": "الإصدار {version} الساري اليوم يقول:",
    "tr": "Bugün geçerli olan {version}. sürüm şöyle diyor:",
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
#: Introduces quotations which may not answer the question.
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
#: Introduces quotations without a language model, because an answer always names its author. The setup is none of the
#: reader's business.
NO_MODEL = {
    "en": "These are the documents' own words.",
    "nl": "Dit zijn de woorden van de documenten zelf.",
    "de": "Dies sind die Worte der Dokumente selbst.",
    "fr": "Voici les mots mêmes des documents.",
    "es": "Estas son las palabras de los propios documentos.",
    "it": "Queste sono le parole dei documenti stessi.",
    "pt": "Estas são as palavras dos próprios documentos.",
    "pl": "Są to słowa samych dokumentów.",
    "ko": "문서의 내용을 그대로 인용합니다.",
    "ja": "文書の記述をそのまま示します。",
    "zh": "以下为文档原文。",
    "ar": "هذه كلمات المستندات نفسها.",
    "tr": "Bunlar belgelerin kendi sözleridir.",
}
#: Used when a budget is spent and no model may be called; other languages get the English sentence.
BUDGET_SPENT = {
    "en": "This month's budget is spent, so these are the documents' own words.",
    "nl": "Het budget van deze maand is op; dit zijn de woorden van de documenten zelf.",
    "de": "Das Budget dieses Monats ist verbraucht; dies sind die Worte der Dokumente selbst.",
    "fr": "Le budget de ce mois est épuisé ; ce sont donc les mots mêmes des documents.",
    "es": "El presupuesto de este mes está agotado; estas son las palabras de los propios documentos.",
    "it": "Il budget di questo mese è esaurito; queste sono le parole dei documenti stessi.",
    "ko": "이번 달 예산을 모두 사용했으므로 문서의 문장을 그대로 보여 드립니다.",
}
#: Introduces the quotations shown after the model failed.
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
#: Introduces the quotations shown after the model's answer was withdrawn.
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


#: Precedes quotations in a foreign language.
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
#: The same sentence if only some passages are in a foreign language.
PARTLY_QUOTED_AS_THEY_STAND = {
    "en": "Some of these passages are in {languages}; they are quoted as they stand.",
    "nl": "Sommige van deze passages zijn in het {languages}; ze worden letterlijk geciteerd.",
    "de": "Einige dieser Stellen sind auf {languages}; sie werden im Wortlaut zitiert.",
    "fr": "Certains de ces passages sont en {languages} ; ils sont cités tels quels.",
    "es": "Algunos de estos pasajes están en {languages}; se citan tal cual.",
    "it": "Alcuni di questi passaggi sono in {languages}; sono citati così come sono.",
    "pt": "Alguns destes trechos estão em {languages}; são citados tal como estão.",
    "pl": "Język niektórych z tych fragmentów: {languages}; są cytowane dosłownie.",
    "ko": "아래 내용 중 일부의 원문 언어는 {languages}이며, 원문 그대로 인용합니다.",
    "ja": "以下の一部は{languages}の文書からの引用で、原文のまま示します。",
    "zh": "以下部分段落的语言为{languages}，按原文引用。",
    "ar": "لغة بعض هذه المقاطع: {languages}، وهي مقتبسة كما هي.",
    "tr": "Bu bölümlerin bazılarının dili: {languages}; olduğu gibi alıntılanmıştır.",
}
#: Language names in each language, in the order of `NAMED`.
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
    """Name the other languages of the quotations, in the asker's language; "" without other languages."""
    own = language.split("-")[0].lower()
    names = dict(zip(NAMED, NAMES.get(own, NAMES["en"]).split(), strict=True))
    found = list(dict.fromkeys(languages))
    others = [names[code] for code in found if code in names and code != own]
    words = PARTLY_QUOTED_AS_THEY_STAND if own in found else QUOTED_AS_THEY_STAND
    return phrase(words, language).format(languages=", ".join(others)) if others and own else ""


#: Follows quotations: further documents on the same question, with different figures.
ALSO_IN = {
    "en": "See also: {documents}.",
    "nl": "Zie ook: {documents}.",
    "de": "Siehe auch: {documents}.",
    "fr": "Voir aussi : {documents}.",
    "es": "Véase también: {documents}.",
    "it": "Vedi anche: {documents}.",
    "pt": "Ver também: {documents}.",
    "pl": "Zobacz też: {documents}.",
    "ko": "함께 볼 문서: {documents}",
    "ja": "関連する文書: {documents}",
    "zh": "另见：{documents}",
    "ar": "انظر أيضًا: {documents}.",
    "tr": "Ayrıca bakınız: {documents}.",
}


#: Opens quotations if the rule for the asker's place comes before different rules.
OWN_PLACE_FIRST = {
    "en": "The rule for your group, {group}, comes first.",
    "nl": "De regel voor uw groep, {group}, staat voorop.",
    "de": "Die Regel für Ihre Gruppe, {group}, steht zuerst.",
    "fr": "La règle pour votre groupe, {group}, vient en premier.",
    "es": "La norma de su grupo, {group}, va primero.",
    "it": "La regola per il suo gruppo, {group}, viene per prima.",
    "pt": "A regra do seu grupo, {group}, vem primeiro.",
    "pl": "Zasada dla Twojej grupy, {group}, jest na początku.",
    "ko": "소속 그룹({group})의 규정이 먼저 나옵니다.",
    "ja": "所属グループ（{group}）の規則を先に示します。",
    "zh": "您所在小组（{group}）的规定列在最前。",
    "ar": "تأتي قاعدة مجموعتك، {group}، أولاً.",
    "tr": "Grubunuzun, {group}, kuralı önce gelir.",
}


#: Precedes quotations which differ only in a name, a figure or "not".
DOCUMENTS_DIFFER = {
    "en": "The documents differ here: check which one applies to you.",
    "nl": "De documenten verschillen hier: ga na welk document voor u geldt.",
    "de": "Die Dokumente unterscheiden sich hier: Bitte prüfen Sie, welches für Sie gilt.",
    "fr": "Les documents diffèrent sur ce point : vérifiez lequel vous concerne.",
    "es": "Los documentos difieren en este punto: compruebe cuál se le aplica.",
    "it": "I documenti differiscono su questo punto: verifichi quale vale per lei.",
    "pt": "Os documentos diferem neste ponto: verifique qual se aplica a si.",
    "pl": "Dokumenty różnią się w tym miejscu: proszę sprawdzić, który ma tu zastosowanie.",
    "ko": "문서마다 내용이 다릅니다. 어느 문서가 본인에게 해당하는지 확인하세요.",
    "ja": "文書によって内容が異なります。どの文書が当てはまるかご確認ください。",
    "zh": "各文件的说法不同，请确认哪一份适用于您。",
    "ar": "تختلف الوثائق في هذه النقطة: تحقق من الوثيقة التي تنطبق عليك.",
    "tr": "Belgeler bu noktada farklı: hangisinin sizin için geçerli olduğunu kontrol edin.",
}


#: Follows `CLOSEST` if the document quoted does not mention the company or country in the question.
NOT_MENTIONED = {
    "en": "It does not mention {name}.",
    "nl": "Daarin wordt {name} niet genoemd.",
    "de": "{name} kommt dort nicht vor.",
    "fr": "Il n'y est pas question de {name}.",
    "es": "Allí no se menciona {name}.",
    "it": "Non vi si parla di {name}.",
    "pt": "Ali não se menciona {name}.",
    "pl": "Nie ma tam mowy o: {name}.",
    "ko": "{name}에 대한 언급은 없습니다.",
    "ja": "{name}についての記載はありません。",
    "zh": "其中没有提到{name}。",
    "ar": "ولا يرد فيه ذكر {name}.",
    "tr": "{name} orada geçmiyor.",
}


def also_in(
    numbers: Sequence[int], citations: Sequence[Citation], language: str, folders: Mapping[UUID, str] | None = None
) -> str:
    """Name further documents in the asker's language, with the folder where titles are equal; empty without numbers."""
    by_number = {citation.number: citation for citation in citations}
    titles = Counter(title for _, title in {(citation.document_id, citation.title) for citation in citations})

    def named(citation: Citation) -> str:
        folder = (folders or {}).get(citation.document_id, citation.folder) if titles[citation.title] > 1 else ""
        return f"{citation.title} ({folder})" if folder else citation.title

    documents = ", ".join(f"{named(by_number[number])} [{number}]" for number in numbers)
    return phrase(ALSO_IN, language).format(documents=documents) if documents else ""


def phrase(phrases: dict[str, str], language: str) -> str:
    """Return the sentence in a language (ISO 639-1; "pt-BR" is read as "pt"), else in English."""
    return phrases.get(language.split("-")[0].lower(), phrases["en"])


#: Room for words before the "not found" sentence: a greeting, "Unfortunately,", "I'm sorry, but".
OPENING_CHARACTERS = 40
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_DIGIT = re.compile(r"\d")
_PHRASES = {
    "en": (
        r"\b(?:i|we)\s+(?:could|can|did|do|was|were|am|are|have|had)\s*(?:not|n['’]t)\s+(?:been\s+)?(?:able\s+to\s+)?"
        r"(?:find|found|locate|located|see|answer|determine|identify|know)\b",
        r"\b(?:i|we)\s+(?:cannot|can['’]t|couldn['’]t|didn['’]t|don['’]t|am\s+unable\s+to|was\s+unable\s+to|"
        r"are\s+unable\s+to)\s+(?:find|locate|see|answer|determine|identify|know|have\s+(?:any|enough|the))\b",
        r"\b(?:i['’]m|i\s+am|we\s+are)\s+(?:unable|not\s+able)\s+to\s+(?:find|locate|answer|determine|identify)\b",
        r"\bthere\s+(?:is|was|are|were)\s+(?:no|not\s+any|not\s+enough|insufficient)\s+(?:\w+\s+){0,2}"
        r"(?:information|mention|answer|details?|passages?)\b(?!\s+(?:desk|officer|point|sheet|session))|\binsufficient\s+information\b",
        r"\b(?:documents?|passages?|context|texts?|sources?|excerpts?|information)\s+(?:\[\d+\]\s*)*(?:(?!that|which|who)\w+\s+){0,2}?"
        r"(?:do|does|did)\s*(?:not|n['’]t)\s+(?:\w+\s+)?(?:contain|mention|answer|include|provide|say|state|specify|"
        r"cover|address|hold|give|discuss)\b",
        r"\bno\s+(?:\w+\s+)?(?:information|answer|mention|passage)\s+(?:\w+\s+){0,5}?(?:found|available|provided|given|"
        r"in\s+the)\b",
        r"\bnot\s+(?:mentioned|found|covered|specified|stated|provided|included|addressed|answered|discussed|available)\s+"
        r"(?:anywhere\s+)?(?:in|by)\s+(?:any\s+of\s+)?(?:the|these|this|your)\s+(?:\w+\s+)?"
        r"(?:documents?|passages?|context|texts?|sources?|excerpts?|information)\b",
    ),
    "nl": (
        r"\b(?:ik|we|wij)\s+(?:kan|kon|heb|konden|kunnen|hebben)\s+(?:\S+\s+){0,8}?(?:niets?|geen)\s+(?:\S+\s+){0,6}?"
        r"(?:vinden|gevonden|beantwoorden)\b|\bik\s+weet\s+(?:het\s+|dit\s+)?niet\b",
        r"\b(?:documenten|document|passages|teksten|bronnen|context)\s+(?:\[\d+\]\s*)*(?:bevat\w*|noem\w*|vermeld\w*|zegg\w*|"
        r"zegt|beantwoord\w*|gev\w*|geeft|behandel\w*|beschrijv\w*)\b[^.!?]{0,40}\b(?:niet|geen|niets)\b",
        r"\b(?:geen|niet)\s+(?:\S+\s+){0,4}?(?:informatie|antwoord|vermelding)\b[^.!?]{0,60}"
        r"\b(?:gevonden|te\s+vinden|beschikbaar|in\s+de)\b",
        r"\b(?:staat|staan)\s+(?:\S+\s+){0,3}?(?:niet|niets|geen)\b[^.!?]{0,30}\b(?:documenten|passages|teksten|bronnen)\b",
    ),
    "de": (
        r"\b(?:ich|wir)\s+(?:kann|konnte|habe|können|konnten|haben)\s+[^.!?]{0,80}?(?:nicht|nichts|kein\w*)\s+[^.!?]{0,60}?"
        r"(?:finden|gefunden|beantworten)\b|\bich\s+weiß\s+(?:es\s+|das\s+)?nicht\b",
        r"\b(?:konnte|konnten)\s+ich\s+[^.!?]{0,60}?(?:nicht|nichts|kein\w*)\b[^.!?]{0,60}\bfinden\b",
        r"\b(?:dokumente|dokumenten|unterlagen|stellen|passagen|textstellen|quellen|kontext)\s+(?:\[\d+\]\s*)*(?:enth\w+|"
        r"erwähn\w+|nenn\w+|beantwort\w+|geben|gibt|sagen|sagt|beschreib\w+|behandel\w+)\b"
        r"[^.!?]{0,60}\b(?:nicht|nichts|kein\w*)\b",
        r"\bin\s+den\s+(?:\w+\s+)?(?:dokumenten|unterlagen|passagen|textstellen|quellen)\b[^.!?]{0,30}\bnicht\s+(?:erwähnt|"
        r"genannt|beschrieben|enthalten|behandelt|gefunden)\b",
        r"\b(?:kein\w*|nicht\s+genügend)\s+(?:\S+\s+){0,3}?(?:informationen?|antwort|angaben?)\b[^.!?]{0,60}"
        r"\b(?:gefunden|enthalten|vorhanden|verfügbar|in\s+den)\b",
    ),
    "fr": (
        r"\bje\s+n['’](?:ai\s+(?:pas|rien)|arrive\s+pas\s+à)\s+(?:\S+\s+){0,3}?(?:trouvé|trouver|pu)\b|\bje\s+ne\s+"
        r"(?:peux|trouve|sais|parviens)\s+(?:pas|rien)\b|\bnous\s+n['’]avons\s+pas\s+trouvé\b",
        r"\b(?:documents?|passages?|textes?|sources?|extraits?|contexte)\b[^.!?]{0,40}\b(?:ne\s+(?:mention|contien|"
        r"répond|précis|donne|dis|indiqu|parl|trait|abord|fourni|comport|permett)|n['’](?:indiqu|abord|évoqu|apport))\w*\s+"
        r"(?:\S+\s+)?(?:pas|rien|aucune?)\b",
        r"\b(?:aucune?|pas\s+d['’])\s*(?:information|réponse|mention)\b",
    ),
    "es": (
        r"\bno\s+(?:he\s+(?:podido\s+)?|pude\s+|puedo\s+|hemos\s+|logro\s+|se\s+)?(?:encontr\w+|hall\w+|responder|sé)\b",
        r"\b(?:documentos?|pasajes?|textos?|fuentes?|fragmentos?|contexto)\s+[^.!?]{0,30}\bno\s+(?:mencion|contien|respond|indica|dice|"
        r"especific|tratan?\b|incluy|proporcion|habl|dan?\b|ofrec)",
        r"\bno\s+hay\s+(?:\w+\s+){0,2}(?:información|respuesta|mención|datos)\b|\bninguna\s+(?:información|respuesta)\b",
    ),
    "it": (
        r"\bnon\s+(?:ho\s+(?:potuto\s+)?|posso\s+|riesco\s+a\s+|sono\s+riuscit\w\s+a\s+|abbiamo\s+)?(?:trov\w+|rispondere|so)\b",
        r"\b(?:documenti|documento|passaggi|testi|fonti|brani|contesto)\s+[^.!?]{0,30}\bnon\s+(?:menzion|conten|rispond|indica|dic|specific|"
        r"tratta|includ|forni|parla|danno)",
        r"\b(?:non\s+(?:ci\s+sono|c['’]è)|nessuna)\s+(?:\w+\s+){0,2}(?:informazion\w|risposta|menzione)\b",
    ),
    "pt": (
        r"\bnão\s+(?:consegui\s+|pude\s+|posso\s+|foi\s+possível\s+|foram\s+|foi\s+)?(?:encontr\w+|ach\w+|responder|sei)\b",
        r"\b(?:documentos?|passagens|trechos?|textos?|fontes?|contexto)\s+[^.!?]{0,30}\bnão\s+(?:mencion|cont[êée]m|respond|indica|"
        r"diz|especific|trata|inclu|fornec|fala|oferec)",
        r"\bnão\s+(?:há|existe)\s+(?:\w+\s+){0,2}(?:informaç\w+|resposta|menção)\b|\bnenhuma\s+(?:informação|resposta)\b",
    ),
    "pl": (
        r"\bnie\s+(?:mogę\s+|mogłem\s+|mogłam\s+|udało\s+(?:mi\s+)?się\s+|można\s+)?(?:znal\w+|znajduj\w+|odnale\w+|odpowiedzieć|"
        r"wiem)\b",
        r"\b(?:dokumenty|dokumentach|dokumentów|fragmenty|fragmentach|teksty|tekstach|źródła|kontekst)\s+[^.!?]{0,30}\bnie\s+(?:zawier|wspomin|odpowiad|mówi|"
        r"podaj|określ|obejmuj|opisuj|dostarcz)",
        r"\b(?:nie\s+ma|brak)\s+(?:\w+\s+){0,2}(?:informacji|odpowiedzi|wzmianki)\b",
    ),
    "ko": (
        r"(?:찾을\s?수\s?없|찾지\s?못|확인할\s?수\s?없|확인되지\s?않|알\s?수\s?없|답(?:변)?(?:할|드릴)\s?수\s?없)",
        r"(?:문서|자료|발췌|본문|공지|지문|내용)(?:에|에는|에서|에서는|들에는)\s?[^.!?\n]{0,60}"
        r"(?:없습니다|없다|없어요|나와\s?있지\s?않|포함되어\s?있지\s?않|언급되지\s?않|언급이\s?없|명시되어\s?있지\s?않)",
        r"(?:정보|답|답변|언급)(?:가|이|은|는)\s?(?:없습니다|없어요|없다|부족)",
    ),
    "ja": (
        r"見つ(?:かりません|けられません|けることができません|からな)|(?:お答え|回答)(?:できません|することができません)|わかりません|分かりません",
        r"(?:文書|資料|文章|抜粋|情報源|本文|パッセージ)[^。！？\n]{0,50}(?:ありません|記載されていません|含まれていません|"
        r"書かれていません|言及されていません|述べられていません)",
        r"(?:情報|記載|答え|回答|記述)(?:が|は)(?:ありません|ない|見当たりません)",
    ),
    "zh": (
        r"(?:找不到|没有找到|沒有找到|未找到|未能找到|无法找到|無法找到|无法回答|無法回答|不知道|无法确定)",
        r"(?:文档|文件|资料|資料|段落|文本|上下文|来源|内容)[^。！？\n]{0,30}(?:没有|沒有|未|并未|不包含|不含)"
        r"[^。！？\n]{0,20}(?:提到|提及|说明|說明|包含|回答|涉及|规定|信息|答案|内容|$)",
        r"没有(?:\S{0,10})(?:相关)?(?:信息|资料|答案)",
    ),
    "ar": (
        r"(?:لم|لا|لن)\s+(?:أتمكن\s+من\s+|أستطيع\s+|يمكنني\s+|أستطع\s+|نتمكن\s+من\s+)?(?:أجد|اجد|العثور|إيجاد|نجد|أعثر|أعرف|الإجابة)",
        r"(?:المستندات|الوثائق|المقاطع|النصوص|المصادر|السياق|المستند|الوثيقة)\s+[^.!؟\n]{0,20}(?:لا|لم)\s+\S+"
        r"|(?:لا|لم)\s+(?:تجيب|تذكر|تحتوي|تتضمن|تحتو|تتناول|يرد|ترد)\s+[^.!؟\n]{0,20}(?:المستندات|الوثائق|المقاطع|النصوص|المصادر)",
        r"(?:لا\s+توجد|لا\s+يوجد|لم\s+يتم\s+العثور\s+على)\s+(?:\S+\s+){0,2}?(?:معلومات|إجابة|ذكر|أي)",
    ),
    "tr": (
        r"\b(?:bulamadım|bulamıyorum|bulamadık|bulunamadı|yanıtlayamıyorum|yanıtlayamam|cevaplayamıyorum|cevaplayamam|"
        r"bilmiyorum|belirleyemiyorum)\b",
        r"\b(?:belge|bölüm|metin|kaynak|alıntı|içerik|pasaj)\w*\s+[^.!?\n]{0,60}\b(?:yok(?:tur)?|yer\s+almıyor|yer\s+almamaktadır|"
        r"içermiyor|belirtilmemiş\w*|belirtmiyor|bahsetmiyor|bahsedilmiyor|yanıtlamıyor|cevaplamıyor|geçmiyor)\b",
        r"\b(?:bilgi|yanıt|cevap)\s+(?:yok(?:tur)?|bulunmuyor|bulunmamaktadır|bulunamadı|mevcut\s+değil)\b",
    ),
}
_ANY = re.compile("|".join(f"(?:{phrase})" for phrases in _PHRASES.values() for phrase in phrases), re.IGNORECASE)


def says_not_found(text: str) -> bool:
    """Whether the whole reply only says that the documents do not answer the question.

    A reply with a cited continuation, "I could not find X, but Y [1]", is an answer.
    """
    sentences = [part.strip() for part in _SENTENCE.split(_joined(text)) if part and part.strip()]
    before = accumulate(map(len, sentences), initial=0)
    opening = [sentence for sentence, length in zip(sentences, before, strict=False) if length <= OPENING_CHARACTERS]
    # Most replies do not start with a "not found" sentence and need no further check.
    if not any(map(_ANY.search, opening)):
        return False
    said = [_ANY.search(sentence) for sentence in sentences]
    # A citation or a figure in the rest answers a part of the question.
    for sentence, found in zip(sentences, said, strict=True):
        rest = sentence if found is None else sentence[found.end() :]
        if SHOWN_GROUP.search(rest) and (found is None or _goes_on(rest)):
            return False
        if found is not None and _goes_on(rest) and _DIGIT.search(rest):
            return False
    return True


def _joined(text: str) -> str:
    """Move citations after a full stop into the sentence before."""
    return re.sub(r"([.!?。！？])\s*((?:\[\d+\]\s?)+)", r" \2\1", text)


_CONTRAST = re.compile(
    r"\b(?:but|however|although|though|only|yet|maar|echter|wel|aber|jedoch|allerdings|sondern|mais|cependant|toutefois|"
    r"pero|sino|aunque|ma|però|tuttavia|mas|porém|contudo|ale|jednak|lecz|ama|ancak|fakat|yalnız)\b|지만|으나|는데|다만|が、|けれど|ただし|但|不过|然而"
    r"|(?:^|\s)(?:لكن|ولكن|إلا|غير\s+أن)",
    re.IGNORECASE,
)


def _goes_on(rest: str) -> bool:
    """Whether a sentence continues with something else after "not found"."""
    return _CONTRAST.search(rest) is not None
