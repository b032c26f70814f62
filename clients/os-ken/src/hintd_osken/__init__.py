"""An os-ken application that tells hintd the network and installs the routes that hintd chooses.

`python -m hintd_osken --config FILE`; docs/sdn.md says what it does, `os-ken.toml` has every option.
"""
