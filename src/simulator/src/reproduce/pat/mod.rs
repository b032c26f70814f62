//! Paper 002 §6, §8.3–8.4 (Yang et al.): `pat` against `capacity` and `pna`.
//!
//! # Code map
//! - `field`: jobs under drawn chains on a fat-tree with boxes, placed one after another. `compare`: what the next two share. `cost`: Figures 7 and 8(a).
//!   `network`: Figures 8(b) and 8(c). `violations`: Figure 8(d).

mod compare;
mod cost;
mod field;
mod network;
mod violations;

pub use cost::COST;
pub use network::NETWORK_USE;
pub use violations::VIOLATIONS;
