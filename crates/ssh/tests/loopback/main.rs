//! The pool against a real `sshd` on the loopback interface.

#![expect(clippy::expect_used, reason = "a test fails if a step of it fails")]

mod auth;
mod host_keys;
mod hosts;
mod lost_links;
mod proxy;
mod running;
mod sshd;
mod transfer;
