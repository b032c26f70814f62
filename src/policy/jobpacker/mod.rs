//! `jobpacker` (004 Li, chapter 4): racks for recurring jobs planned ahead, so that their shuffles ride an optical
//! circuit switch. `corral`, its comparison, comes out of the same parts.

pub mod offline;
