//! The compiler pass by itself: programs behave as before, and the hooks report what the source says.

mod alone;
mod digest;
mod harness;
mod hooks;
mod optimiser;
mod random;
mod residual;
mod unusual;
