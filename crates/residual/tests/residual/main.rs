//! Residual code of functions that tests write down or make up.

mod points;
mod properties;
mod support;
