"""Charts as Vega-Lite specs with their data, and pages made of them."""
