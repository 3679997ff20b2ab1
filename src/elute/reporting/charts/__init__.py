"""Charts as Vega-Lite specs with their data."""
