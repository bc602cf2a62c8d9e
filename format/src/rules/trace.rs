//! Rules for traces.

catalogue! {}
