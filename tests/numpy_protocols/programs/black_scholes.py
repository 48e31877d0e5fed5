"""The price of European options by the formula of Black and Scholes, written for NumPy and SciPy."""

import numpy as np
from scipy import special


def price(spot, strike, rate, volatility, maturity, call=True):
    sign = np.where(call, 1.0, -1.0)
    deviation = volatility * np.sqrt(maturity)
    d1 = (np.log(spot / strike) + (rate + np.square(volatility) / 2) * maturity) / deviation
    d2 = d1 - deviation
    return sign * (spot * special.ndtr(sign * d1) - strike * np.exp(-rate * maturity) * special.ndtr(sign * d2))


def normal_density(x):
    return np.exp(-x ** 2 / 2) / np.sqrt(2 * np.pi)
