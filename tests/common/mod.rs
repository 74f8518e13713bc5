//! What the tests of the whole tool share: finding it, running it under a timeout, fixtures.

// Every test binary uses another part of this.
#![allow(dead_code)]

pub mod build;
pub mod fixture;
pub mod leftovers;
pub mod process;
pub mod tool;
