"""Prices, packs and windows: catalogues, calculator, calendar, kit (R32 to R39, R42, R43).

The light path: standard library only, so that a price is there before torch could be imported.
Rows are ``NamedTuple`` for the same reason: a frozen dataclass with slots takes 1.5 ms a class to
define, a ``NamedTuple`` 0.07, and there are fifteen.
"""
