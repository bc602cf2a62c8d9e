//! Runs language models from ExecuTorch programs: prompt in, text out.
#![forbid(unsafe_code)]
