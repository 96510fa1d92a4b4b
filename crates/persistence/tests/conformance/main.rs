//! The store without a database is held to the real one: the same calls, drawn at random, are made of both, and whatever
//! one of them answers or keeps, the other has to answer or keep, too. A few promises are asked of each by name.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod both;
mod late;
mod moves;
mod promises;
mod sides;

use testkit::Dice;

use both::Both;
use sides::{Memory, Postgres};

/// Each of them is some hundred calls.
const SEQUENCES: u64 = 3;
const CALLS: usize = 200;

#[sqlx::test(migrator = "persistence::MIGRATOR")]
async fn whatever_is_asked_both_stores_answer_the_same(pool: sqlx::PgPool) {
    for seed in 0..SEQUENCES {
        Postgres::empty(&pool).await;
        let mut both = Both::new(Postgres::new(pool.clone()), Memory::new(), Dice::new(seed));
        for call in 0..CALLS {
            both.make_a_call().await;
            if call % 4 == 3 {
                both.compare().await;
            }
        }
        both.assert_that_much_happened();
    }
}
