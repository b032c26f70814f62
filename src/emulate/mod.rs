//! An emulated cluster that feeds a daemon.
