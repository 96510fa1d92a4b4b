//! The store in memory has to behave as the real one. The same random calls go to both, and both have to return and store the
//! same. A few promises are tested by name.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arrays;
mod both;
mod images;
mod late;
mod moves;
mod promises;
mod sides;

use std::collections::BTreeMap;

use testkit::Dice;

use both::Both;
use sides::{Memory, Postgres};

/// The number of sequences; each has hundreds of calls.
const SEQUENCES: u64 = 3;
const CALLS: usize = 500;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn both_stores_return_the_same_for_random_calls(pool: sqlx::PgPool) {
    let mut happened: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..SEQUENCES {
        Postgres::empty(&pool).await;
        let mut both = Both::new(Postgres::new(pool.clone()), Memory::new(), Dice::new(seed));
        for call in 0..CALLS {
            both.make_a_call().await;
            if call % 4 == 3 {
                both.compare().await;
            }
        }
        for (what, times) in both.happened {
            *happened.entry(what).or_default() += times;
        }
    }
    // Sequences in which nothing happens would pass, too.
    for what in [
        "insert",
        "record",
        "a result that was dropped",
        "record_observations",
        "record_images",
        "jobs that wait for one conversion",
        "record_observed_tasks",
        "record_tended",
        "a tended job that was dropped",
    ] {
        assert!(happened.contains_key(what), "no {what} in {happened:?}");
    }
}
