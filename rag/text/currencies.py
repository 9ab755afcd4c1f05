"""Patterns for currencies in thirteen languages. Compile them with `re.IGNORECASE`."""

#: Signs, before or after the number.
SIGNS = "€$£¥₩₺₹₽"
#: Words and codes after the number; in capitals only: TRY, an English word.
WORDS = (
    r"(?:eur|usd|gbp|krw|jpy|cny|chf|pln|czk|huf|inr|rub|aed|sar|egp|(?-i:SEK|NOK|DKK|TRY|BRL)|euros?|dollars?|pounds?"
    r"|cents?|francs?|franken|dólares?|dollari|libras?|sterline|funt\w*|dolar\w*|reais|złot\w+|zł|gr|kč|kr|kron\w+|tl|lira"
    r"|kuruş|avro|rupees?|yen)(?!\w)"
    r"|[만천억]? ?원|[万億]?円|[万亿]?元|ريال|درهم|دينار|جنيه|دولار|يورو"
)
