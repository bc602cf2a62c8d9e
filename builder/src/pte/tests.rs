//! What a program builder finishes, and what it refuses.
