//! The migrations are compiled in: a new one has to rebuild the crate.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
