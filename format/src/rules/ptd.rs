//! Rules for data files.

catalogue! {}
