//! The pool against a real `sshd` on the loopback interface.

mod auth;
mod host_keys;
mod hosts;
mod lost_links;
mod proxy;
mod running;
mod sshd;
mod transfer;
