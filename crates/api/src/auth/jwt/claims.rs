//! The claims of a verified token.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta};
use domain::{Owner, Timestamp};
use persistence::Scopes;
use serde_json::Value;

use super::refusal::Refusal;

const LONGEST_OWNER: usize = 256;

/// Which claims name the bearer's owner and scopes.
#[derive(Debug, Clone)]
pub struct ClaimMapping {
    /// A claim's name, or a JSON pointer such as `/realm_access/roles`.
    pub owner: String,
    /// Prepended to the owner, so that an issuer's owner is never one of this service's own tokens.
    pub owner_prefix: String,
    /// Where the scopes are: a text with spaces, or a list.
    pub scopes: String,
    /// Maps the issuer's scope names to scopes. Empty: the names are `read`, `write` and `admin`. Otherwise only the
    /// names in the map count.
    pub words: BTreeMap<String, Scopes>,
}

impl ClaimMapping {
    pub(super) fn owner(&self, claims: &Value) -> Result<Owner, Refusal> {
        let name = find(claims, &self.owner).and_then(Value::as_str);
        let is_fit = |name: &&str| {
            !name.trim().is_empty() && name.len() <= LONGEST_OWNER && !name.chars().any(char::is_control)
        };
        let name = name.filter(is_fit).ok_or_else(|| Refusal::Lacks(self.owner.clone()))?;
        Ok(Owner::new(format!("{}{name}", self.owner_prefix)))
    }

    /// Without the claim the bearer has no scope.
    pub(super) fn scopes(&self, claims: &Value) -> Scopes {
        let words: Vec<&str> = match find(claims, &self.scopes) {
            Some(Value::String(text)) => text.split_whitespace().collect(),
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let scope = |word: &&str| {
            if self.words.is_empty() {
                Scopes::from_words(&[*word])
            } else {
                self.words.get(*word).copied().unwrap_or_default()
            }
        };
        words.iter().map(scope).fold(Scopes::default(), |sum, one| Scopes {
            read: sum.read || one.read,
            write: sum.write || one.write,
            admin: sum.admin || one.admin,
        })
    }
}

/// Until when the token is valid, if it is valid now.
pub(super) fn good_until(claims: &Value, now: Timestamp, leeway: TimeDelta) -> Result<Timestamp, Refusal> {
    let end = time(claims, "exp")?.ok_or_else(|| Refusal::Lacks("exp".to_owned()))?;
    let end = end.checked_add_signed(leeway).unwrap_or(end);
    if now >= end {
        return Err(Refusal::Expired);
    }
    match time(claims, "nbf")? {
        Some(begin) if begin > now.checked_add_signed(leeway).unwrap_or(now) => Err(Refusal::NotYetValid),
        _ => Ok(end),
    }
}

/// A number of seconds since 1970, whole or not (RFC 7519 §2).
fn time(claims: &Value, claim: &str) -> Result<Option<Timestamp>, Refusal> {
    let Some(value) = claims.get(claim) else { return Ok(None) };
    #[expect(clippy::cast_possible_truncation, reason = "an overflow saturates")]
    let seconds = value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds.floor() as i64));
    let seconds = seconds.filter(|seconds| *seconds >= 0).ok_or_else(|| Refusal::Lacks(claim.to_owned()))?;
    Ok(Some(DateTime::from_timestamp(seconds, 0).unwrap_or(DateTime::<chrono::Utc>::MAX_UTC)))
}

fn find<'a>(claims: &'a Value, place: &str) -> Option<&'a Value> {
    if place.starts_with('/') { claims.pointer(place) } else { claims.get(place) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mapping() -> ClaimMapping {
        ClaimMapping {
            owner: "sub".to_owned(),
            owner_prefix: "jwt:".to_owned(),
            scopes: "scope".to_owned(),
            words: BTreeMap::new(),
        }
    }

    fn words(mapping: &ClaimMapping, claims: &Value) -> String {
        mapping.scopes(claims).to_words().join(" ")
    }

    #[test]
    fn the_owner_stands_behind_a_prefix_and_has_to_be_a_name() {
        let owner = |claims: &Value| mapping().owner(claims).map(|owner| owner.to_string());
        assert_eq!(owner(&json!({"sub": "ann"})).unwrap(), "jwt:ann");
        for nobody in
            [json!({}), json!({"sub": ""}), json!({"sub": " "}), json!({"sub": 7}), json!({"sub": "a\nb"})]
        {
            assert_eq!(owner(&nobody), Err(Refusal::Lacks("sub".to_owned())), "{nobody}");
        }
        assert!(owner(&json!({"sub": "x".repeat(257)})).is_err());
        let within = ClaimMapping { owner: "/user/name".to_owned(), ..mapping() };
        assert_eq!(within.owner(&json!({"user": {"name": "ann"}})).unwrap().as_str(), "jwt:ann");
    }

    #[test]
    fn scopes_are_a_text_or_a_list_and_other_words_mean_nothing() {
        assert_eq!(words(&mapping(), &json!({"scope": "openid read  write"})), "read write");
        assert_eq!(words(&mapping(), &json!({"scope": ["admin", 7]})), "admin");
        for nothing in
            [json!({}), json!({"scope": null}), json!({"scope": "READ reads"}), json!({"scope": {"read": 1}})]
        {
            assert_eq!(words(&mapping(), &nothing), "", "{nothing}");
        }
    }

    #[test]
    fn mapped_scope_names_replace_the_default_ones() {
        let both = Scopes { read: true, write: true, admin: false };
        let foreign = ClaimMapping {
            scopes: "/realm_access/roles".to_owned(),
            words: [("gpu-users".to_owned(), both)].into(),
            ..mapping()
        };
        let roles = |list: Value| json!({"realm_access": {"roles": list}, "scope": "admin"});
        assert_eq!(words(&foreign, &roles(json!(["x", "gpu-users"]))), "read write");
        assert_eq!(words(&foreign, &roles(json!(["admin", "read"]))), "");
    }

    #[test]
    fn a_token_is_good_from_nbf_to_exp_give_or_take_the_leeway() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let judge = |now, claims: Value| good_until(&claims, at(now), TimeDelta::seconds(30));
        let claims = || json!({"exp": 1000, "nbf": 900});
        assert_eq!(judge(869, claims()), Err(Refusal::NotYetValid));
        assert_eq!(judge(870, claims()), Ok(at(1030)));
        assert_eq!(judge(1029, claims()), Ok(at(1030)));
        assert_eq!(judge(1030, claims()), Err(Refusal::Expired));
        assert_eq!(judge(1000, json!({"exp": 1000.9})), Ok(at(1030)));
        assert!(judge(1000, json!({"exp": 1e300})).is_ok());
        for wrong in [json!({}), json!({"exp": "1000"}), json!({"exp": -1}), json!({"exp": null})] {
            assert_eq!(judge(0, wrong), Err(Refusal::Lacks("exp".to_owned())));
        }
        assert_eq!(judge(0, json!({"exp": 9, "nbf": "soon"})), Err(Refusal::Lacks("nbf".to_owned())));
    }
}
