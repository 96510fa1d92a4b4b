use sqlx::PgPool;

use super::*;
use crate::seal::Sealer;

/// So rarely that no token is added while a test runs, on a busy machine too.
const SITE: RpcBudget = RpcBudget { burst: 40, per_minute: 1 };

fn dgx() -> ClusterName {
    "dgx".parse().unwrap()
}

fn store(pool: PgPool) -> Store {
    Store::from_pool(pool, Sealer::from_key([7; 32]))
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn processes_share_one_budget_and_none_is_spent_twice(pool: PgPool) {
    let stores: Vec<_> = (0..8).map(|_| store(pool.clone())).collect();
    let mut asked = tokio::task::JoinSet::new();
    for store in stores {
        asked.spawn(async move {
            let mut paid = 0;
            for _ in 0..10 {
                paid += u32::from(store.pay_rpcs(&dgx(), SITE, 1, Urgency::LatePoll).await.unwrap().is_ok());
            }
            paid
        });
    }
    assert_eq!(asked.join_all().await.iter().sum::<u32>(), SITE.size());
    let state = store(pool).rpc_state(&dgx(), SITE).await.unwrap();
    assert_eq!((state.tokens.unwrap().left, state.spent), (0, 39));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn what_a_command_did_not_make_is_given_back_and_a_refusal_of_slurm_leaves_nothing(pool: PgPool) {
    let store = store(pool);
    assert_eq!(store.rpc_state(&dgx(), SITE).await.unwrap().tokens, None);
    store.pay_rpcs(&dgx(), SITE, 10, Urgency::Submit).await.unwrap().unwrap();
    store.settle_rpcs(&dgx(), SITE, 10, 4, false).await.unwrap();
    let state = store.rpc_state(&dgx(), SITE).await.unwrap();
    assert_eq!((state.tokens.unwrap().left, state.spent), (35, 4));
    store.settle_rpcs(&dgx(), SITE, 0, 0, true).await.unwrap();
    let wait = store.pay_rpcs(&dgx(), SITE, 1, Urgency::LatePoll).await.unwrap().unwrap_err();
    assert!(wait > Duration::from_secs(15) && wait <= Duration::from_mins(1), "{wait:?}");
    assert_eq!(store.rpcs_spent().await.unwrap()[&dgx()].1, 4);
}
