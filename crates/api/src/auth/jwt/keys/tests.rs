use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use tokio::time::advance;

use super::*;

/// An issuer with the keys of these names; or one that is away.
#[derive(Default)]
struct Issuer {
    ids: std::sync::Mutex<Option<Vec<&'static str>>>,
    asked: AtomicU32,
    hold: Arc<Mutex<()>>,
}

impl Issuer {
    fn has(&self, ids: &[&'static str]) {
        *self.ids.lock().unwrap() = Some(ids.to_vec());
    }

    fn is_away(&self) {
        *self.ids.lock().unwrap() = None;
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

impl KeySource for Issuer {
    fn read(&self) -> KeyReading {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let ids = self.ids.lock().unwrap().clone();
        let x = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";
        let key = |id: &str| json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": id});
        let document =
            ids.map(|ids| json!({"keys": ids.into_iter().map(key).collect::<Vec<_>>()}).to_string());
        let hold = Arc::clone(&self.hold);
        Box::pin(async move {
            drop(hold.lock().await);
            document.map(String::into_bytes).ok_or_else(|| "away".to_owned())
        })
    }
}

const PACE: KeyPace = KeyPace { keep: Duration::from_mins(10), pause: Duration::from_secs(30) };

fn keys(ids: &[&'static str]) -> (Arc<Issuer>, Arc<Keys>) {
    let issuer = Arc::new(Issuer::default());
    issuer.has(ids);
    (Arc::clone(&issuer), Arc::new(Keys::new(issuer, PACE)))
}

async fn find(keys: &Keys, id: &str) -> Result<(), Refusal> {
    keys.find(Some(id), Algorithm::EdDSA).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn keys_are_read_once_and_again_for_an_unknown_kid_but_not_often() {
    let (issuer, keys) = keys(&["old"]);
    for _ in 0..3 {
        assert_eq!(find(&keys, "old").await, Ok(()));
    }
    assert_eq!(issuer.asked(), 1);
    advance(PACE.pause).await;
    issuer.has(&["old", "new"]);
    assert_eq!(find(&keys, "new").await, Ok(()));
    assert_eq!(issuer.asked(), 2);
    for _ in 0..100 {
        assert_eq!(find(&keys, "guess").await, Err(Refusal::UnknownKey));
    }
    assert_eq!(issuer.asked(), 2);
    advance(PACE.pause).await;
    assert_eq!(find(&keys, "guess").await, Err(Refusal::UnknownKey));
    assert_eq!(issuer.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_key_is_not_used_for_long() {
    let (issuer, keys) = keys(&["stolen", "good"]);
    assert_eq!(find(&keys, "stolen").await, Ok(()));
    issuer.has(&["good"]);
    advance(PACE.keep).await;
    assert_eq!(find(&keys, "stolen").await, Err(Refusal::UnknownKey));
    assert_eq!(find(&keys, "good").await, Ok(()));
    assert_eq!(issuer.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn keys_stay_while_the_issuer_is_unreachable_and_an_unknown_key_is_then_a_503() {
    let (issuer, keys) = keys(&["good"]);
    assert_eq!(find(&keys, "good").await, Ok(()));
    issuer.is_away();
    advance(PACE.keep).await;
    assert_eq!(find(&keys, "good").await, Ok(()));
    assert_eq!(find(&keys, "new").await, Err(Refusal::KeysUnavailable));
    assert_eq!(issuer.asked(), 2, "the pause holds for what failed, too");
    issuer.has(&["good", "new"]);
    advance(PACE.pause).await;
    assert_eq!(find(&keys, "new").await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn requests_during_a_read_of_the_keys_wait_for_it_or_use_old_keys() {
    let (issuer, keys) = keys(&["good"]);
    assert_eq!(find(&keys, "good").await, Ok(()));
    issuer.has(&["good", "new"]);
    advance(PACE.keep).await;
    let held = issuer.hold.lock().await;
    let meanwhile = async {
        while issuer.asked() < 2 {
            tokio::task::yield_now().await;
        }
        let known = find(&keys, "good").await;
        drop(held);
        known
    };
    let all = tokio::join!(find(&keys, "new"), find(&keys, "new"), meanwhile);
    assert_eq!(all, (Ok(()), Ok(()), Ok(())));
    assert_eq!(issuer.asked(), 2);
}
