"""Words that carry no topic, by language: function words and the phrases questions are wrapped in.

They are compared before stemming, lower case, with their accents. A missing word costs little (its idf is small); a
topic word among them could never be found, so when in doubt a word is left out.
"""

from __future__ import annotations

_LISTS = {
    "en": """a about above after again against all also am an and any are aren as at be because been before being below
        between both but by can cannot could couldn did didn do does doesn doing don down during each else ever few for from
        further had hadn has hasn have haven having he her here hers herself him himself his how however i if in into is isn
        it its itself just let ll may me might more most much must my myself no nor not now of off on once only or other
        ought our ours ourselves out over own per please re s same shall she should shouldn so some such t than that the
        their theirs them themselves then there these they this those through to too under until up upon us ve very was
        wasn we were weren what when where whether which while who whom whose why will with within without won would
        wouldn yet you your yours yourself yourselves explain tell according mention mentioned regarding many any""",
    "nl": """aan al alle alles als alsof altijd andere ben bent bij binnen daar daarna dan dat de der deze die dit doch
        doen doe doet door dus een eens en er ge geen geweest haar had hadden heb hebben hebt heeft hem het hier hij hoe
        hoeveel hun iemand iets ik in is ja je jij jou jouw jullie kan kon konden kun kunnen kunt maar me meer men met mij
        mijn moet moeten mag mogen na naar niet niets nog nu of om omdat onder ons onze ook op over reeds te tegen toch
        toen tot tussen u uit uw van veel via volgens voor vooral waar waarom wanneer waren was wat we wel welk welke werd
        werden wie wij wil word worden wordt wordt zal ze zelf zich zij zijn zo zonder zou zouden""",
    "de": """aber alle allem allen aller alles als also am an andere anderem anderen anderer anderes auch auf aus bei beim
        bin bis bist da damit dann das dass daß dein deine dem den denn der des dessen deren dich die dies diese diesem diesen
        dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer für gegen gegenüber
        gibt habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in indem
        ins ist jede jedem jeden jeder jedes jene jenem jenen jener jetzt kann kein keine keinem keinen keiner können
        könnte laut man manche mein meine meinem meinen meiner mich mir mit muss müssen nach nicht nichts noch nun nur ob
        oder ohne sehr sein seine seinem seinen seiner seit selbst sich sie sind so solche soll sollte sondern sonst um und
        uns unser unsere unter viel viele vom von vor wann war waren warum was weil welche welchem welchen welcher welches
        wenn wer werde werden wem wen wessen wie wieder wieso wieviel will wir wird wo wohin woher wurde wurden während zu zum
        zur zwar zwischen über""",
    "fr": """à afin ai aie ainsi alors après as au aucun aucune aura auront aussi autre autres aux avait avant avec avez
        avoir avons ayant c car ce ceci cela celle celles celui ces cet cette ceux chaque chez ci comme comment combien d
        dans de depuis des donc dont du elle elles en encore entre es est et étaient était étant été être eu eux fait faut
        fut il ils j je jusqu jusque l la laquelle le lequel les lesquels leur leurs lors lorsque lui m ma mais me même
        mêmes mes moi mon n ne ni nos notre nous on ont ou où par pas pendant peu peut peux plus pour pourquoi puis qu
        quand que quel quelle quelles quels quelque quelques qui quoi s sa sans se sera seront ses si soit son sont sous
        sur t ta te tes toi ton tous tout toute toutes très tu un une va vers vos votre vous y""",
    "es": """a al algo algún alguna algunas alguno algunos ante antes aquel aquella así aun aunque cada como cómo con contra
        cual cuál cuales cuáles cualquier cuando cuándo cuánta cuántas cuánto cuántos de del desde donde dónde dos durante
        e el él ella ellas ellos en entre era eran eres es esa esas ese eso esos esta está están estas este esto estos
        estoy fue fueron ha había habían han has hasta hay he la las le les lo los más me mi mí mientras mis mucho muy
        nada ni no nos nosotros nuestra nuestro o os otra otras otro otros para pero poco por porque pues puede puedo que
        qué quien quién quienes quiénes se sea según ser si sí sido sin sino sobre son soy su sus también tan tanto te
        tengo tiene tienen toda todas todo todos tu tú tus un una unas uno unos usted ustedes y ya yo""",
    "it": """a abbia abbiamo ad agli ai al alcuni all alla alle allo anche ancora avere aveva avevano c che chi ci ciò
        coi col come con contro cosa così cui d da dagli dai dal dall dalla dalle dallo degli dei del dell della delle dello
        di dove dopo e è ed era erano essere fa fu furono gli ha hai hanno ho i il in io l la le lei li lo loro lui ma me
        mentre mi mia mie miei mio molto ne negli nei nel nell nella nelle nello no noi non nostra nostro o ogni oltre
        per perché però più poi può qual quale quali quando quanta quante quanti quanto quei quel quella quelle quelli
        quello questa queste questi questo qui s se sei senza si sia siamo siete solo sono stata state stati stato su sua
        sue sugli sui sul sull sulla sulle suo suoi ti tra fra tu tua tuo tutta tutte tutti tutto un una uno v vi voi
        vostra vostro""",
    "pt": """a à ao aos aquela aquele aquilo as às até cada com como contra da das de dela dele deles depois desde do dos
        durante e é ela elas ele eles em entre era eram essa essas esse esses esta está estão estas estava este estes eu
        foi foram há isso isto já la lhe lhes lo mais mas me mesmo meu meus minha minhas muito na não nas nem no nos nós
        nossa nosso num numa o os ou onde para pela pelas pelo pelos pode podem por porque porquê posso quais qual quando
        quanta quantas quanto quantos que quê quem se sem ser será seu seus são só sob sobre sua suas sou também te tem
        têm tenho ter teu tua tudo todos todas um uma umas uns vai você vocês""",
    "pl": """a aby albo ale ani bardzo bez bo być był była było były będzie będą by ci co czego czy czym dla do gdy gdzie go
        i ich ile im in inne jak jaka jaki jakie jakich jako je jego jej jest jestem jeśli już każdy kiedy kto której
        który która które których którym ku lub ma mają mam mi mnie moje mój może można mu my na nad nam nas nasz nasza
        nie nich nim niż o od on ona one oni oraz po pod podczas ponieważ poza przed przez przy są się tak także tam te
        tego tej ten też to tu tych tylko tym w wam was we według wiele wszystko wy z za ze że""",
    "tr": """acaba ama ancak bana bazı belki ben beni benim bir biri birkaç biz bizim bu buna bunda bundan bunlar bunu bunun
        çok çünkü da daha de değil diye en gibi göre hangi hangisi hem hep hepsi her hiç için ile ise kadar kaç ki kim
        kimi kimin mı mi mu mü nasıl ne neden nedir nerede nereye niçin niye o olan olarak olduğu oldu ona ondan onlar
        onu onun sen senin şey siz sizin şu tarafından tüm var ve veya ya yani yok""",
    "ru": """а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее её если
        есть еще ещё же за и из или им их к как какая какие какой ко когда кто ли либо мне может можно мы на над надо наш
        не него нее нет ни них но ну о об однако он она они оно от очень по под при с сколько со так также такой там те
        тем то того тоже той только том ты у уже хотя чего чей чем что чтобы чье эта эти это этого этой этом этот я""",
    "sv": """alla allt att av blev bli blir de dem den denna deras dess det detta dig din dina du där då efter ej eller en er
        era ett från för ha hade han hans har henne hennes hon honom hur här i icke inte ja jag kan man med mellan men mig
        min mitt mot mycket ni nu när någon något några och om oss på samma sedan sig sin sina sitt ska skulle som så
        till under upp ut utan vad var vara varför varit vart vem vi vid vilka vilken vilket vill är än över""",
    "da": """af alle at blev blive bliver da de dem den denne der deres det dette dig din disse dog du efter eller en end er
        et for fra få ham han hans har havde hende hendes her hos hun hvad hvem hvilken hvis hvor hvordan hvorfor i ikke
        ind jeg jer kan man med meget men mig min mit mod må ned når nogen noget nu og også om op os over på sig sin
        skal skulle som sådan til ud under var vi vil ville være været""",
    "ar": """من في على الى إلى عن مع ما ماذا لماذا هل كيف متى اين أين كم من هو هي هم هن انا أنا نحن انت أنت هذا هذه ذلك تلك
        التي الذي الذين كان كانت يكون تكون قد لقد لا لم لن ان أن إن او أو ثم و بين عند بعد قبل حتى كل بعض غير اي أي هناك
        حيث اذا إذا عندما لدى ليس خلال حول منذ كما به بها له لها فيه فيها منها منه عليه عليها""",
    "ko": """그 그리고 그런데 그러나 그럼 그것 이것 저것 무엇 무엇인가 무엇인가요 무엇입니까 뭐 뭔가요 누구 누가 언제 어디 어디서 어떻게 어떤 어느
        왜 얼마 얼마나 몇 및 또는 등 이 저 수 것 때 대해 대한 대하여 관한 관해 관하여 위한 위해 통해 따라 의해 있는 있나요 있습니까 있다 있어요
        하나요 합니까 하는 되는 되나요 됩니까 알려 알려줘 알려주세요 주세요 궁금합니다 제가 저는 나는 내가 우리""",
}

STOPWORDS: dict[str, frozenset[str]] = {language: frozenset(words.split()) for language, words in _LISTS.items()}

#: Chinese and Japanese have no spaces: these are cut out of the text before its bigrams are made.
CHINESE_BREAKS = (
    "为什么", "為什麼", "什么", "什麼", "怎么样", "怎么", "怎麼", "如何", "多少", "哪些", "哪里", "哪裡", "哪个", "哪個",
    "可以", "是否", "是不是", "有没有", "以及", "或者", "的", "了", "吗", "嗎", "呢", "吧", "们", "們", "是", "在", "和", "与", "或",
    "被", "把", "及", "谁", "誰", "几", "請", "请", "我", "你", "您",
)  # fmt: skip
JAPANESE_BREAKS = (
    "について", "ください", "教えて", "でしょうか", "ですか", "ますか", "ました", "でした", "ません", "という", "として",
    "により", "によって", "において", "どのように", "どのような", "どれくらい", "どのくらい", "何ですか", "なぜ", "どこ",
    "だれ", "誰", "いつ", "どの", "どれ", "です", "ます", "から", "まで", "した", "して", "する", "いる", "ある", "れる", "られる",
    "など", "は", "が", "を", "に", "の", "と", "へ", "で", "も", "か", "や",
)  # fmt: skip
