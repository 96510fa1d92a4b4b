//! Tests of the tools against an API that a test makes up, by messages of the protocol.

mod answers;
mod attacks;
mod changing;
mod doors;
mod fake_api;
mod protocol;
mod reading;
mod waiting;
