"""The study `speedtest-aqm`: what speed tests report beneath queue management, and what is true.

`design` has the cells, `figures` what is kept of a run, `measure` runs them in the simulator and `lab` in the
lab, where `client` is the test and `cross` what runs beside it; `calibration` holds reported latency against
the true one, `findings` judges statements. All configurations and published numbers are data
(`speedtest-aqm.toml`).
"""
