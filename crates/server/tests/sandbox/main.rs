//! Tests of the whole service with the sandbox: a real Slurm, sshd and Postgres.
//!
//! They need `deploy/sandbox/sandbox up`, which `make test` runs. Each test starts the program with its own database.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod agents;
mod ahead;
mod airflow;
mod arrays;
mod bars;
mod callers;
mod clients;
mod clocks;
mod cluster;
mod clusters;
mod components;
mod console;
mod containers;
mod credentials;
mod desired_state;
mod diagnosis;
mod ending;
mod environments;
mod evaluation;
mod exclusions;
mod failing_setups;
mod faults;
mod frozen;
mod images;
mod inputs;
mod jwt;
mod kept_clusters;
mod killed;
mod launchers;
mod log_search;
mod logins;
mod logs;
mod monitoring;
mod options;
mod orphans;
mod pipelines;
mod preflight;
mod private_postgres;
mod python_client;
mod requests;
mod restart;
mod restarts;
mod rpc_budget;
mod script;
mod secrets;
mod service;
mod states;
mod status_files;
mod tao_client;
mod tao_sdk;
mod throughput;
mod timeline;
mod traces;
mod unread;
mod usage;
mod waiting;
mod watchers;
mod webhooks;
