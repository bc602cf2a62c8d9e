//! Rules for bundled programs.

catalogue! {}
