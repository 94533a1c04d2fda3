"""ISO 4217 currencies and their minor digits, as data.

Source: ISO 4217 List One as published on 2026-01-01. Codes without a minor unit there (precious
metals, test and accounting codes such as XAU and XXX) are left out: no money is held in them. A
test compares this table with the `iso4217` package, so that a revision of the list is noticed.
"""

_CODES_BY_MINOR_DIGITS = {
    0: ("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"),
    2: (
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF "
        "CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD "
        "GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL "
        "MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR "
        "PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP "
        "TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
    ),
    3: ("BHD IQD JOD KWD LYD OMR TND"),
    4: ("CLF UYW"),
}

MINOR_DIGITS: dict[str, int] = {
    code: digits for digits, codes in _CODES_BY_MINOR_DIGITS.items() for code in codes.split()
}
"""Currency code -> number of decimals of its minor unit (USD 2, JPY 0, KWD 3)."""
