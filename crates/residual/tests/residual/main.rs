//! Residual code of functions that tests write down or make up.

mod copies;
mod points;
mod properties;
mod support;
