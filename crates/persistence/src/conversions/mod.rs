//! Conversions of images: the jobs that wait for them, the right to take a step of one, and the results.

mod records;
mod requests;
mod rows;
mod turns;

pub use records::{ConversionRecord, ConversionRecords};
pub use requests::{ImageRequest, ImageRequests};
pub use turns::{ConversionLease, ConversionTurns};

#[cfg(test)]
mod tests;
