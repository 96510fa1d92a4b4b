//! Runs every program under a real bash, against fakes of Slurm's commands that remember.

#![expect(clippy::unwrap_used, reason = "in a test a failing unwrap is a failing test")]

mod allocations;
mod reports;
mod signs_of_life;
mod site;

mod cancel;
mod check_images;
mod checkpoints;
mod conclude;
mod conclude_unreadable;
mod endless;
mod error_lines;
mod hidden_partition;
mod hostile_answers;
mod install_credentials;
mod locate;
mod odd_files;
mod partitions;
mod poll;
mod poll_arrays;
mod poll_status;
mod preflight;
mod purge;
mod read_logs;
mod remove;
mod requeued;
mod results;
mod room;
mod search_logs;
mod slow_results;
mod submit_batch;
mod submit_failures;
mod submit_files;
mod submit_inputs;
mod syntax;
mod test_only;
