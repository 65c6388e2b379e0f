"""Which formulas made a number. Raised whenever a result changes, so that an old link can say then and now."""

FORMULA_VERSION = "5"
