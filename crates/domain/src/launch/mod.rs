//! From a job to what is submitted: its files and its batch script.

pub(crate) mod staging;
