//! Runs every program under a real bash, against fakes of Slurm's commands that remember.

#![expect(clippy::unwrap_used, reason = "in a test a failing unwrap is a failing test")]

mod signs_of_life;
mod site;

mod cancel;
mod check_images;
mod checkpoints;
mod conclude;
mod conclude_hanging;
mod conclude_unreadable;
mod hidden_partition;
mod hostile_answers;
mod install_credentials;
mod locate;
mod partitions;
mod poll;
mod poll_odd_rows;
mod poll_status;
mod preflight;
mod purge;
mod read_logs;
mod remove;
mod requeued;
mod room;
mod slow_results;
mod submit_again;
mod submit_archive;
mod submit_batch;
mod submit_dirs;
mod submit_hanging;
mod submit_in_place;
mod submit_inputs;
mod submit_leftovers;
mod submit_refused;
mod submit_results;
mod submit_room;
mod submit_waves;
mod syntax;
mod test_only;
