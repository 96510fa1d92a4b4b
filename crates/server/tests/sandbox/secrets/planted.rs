//! Unique values, and every encoding in which a text may contain them.

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use serde_json::{Value, json};

/// One secret given to the service.
pub(super) struct Planted {
    /// The field that holds it.
    pub(super) name: &'static str,
    /// The part that no escaping changes.
    core: String,
}

impl Planted {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, core: format!("q{:032x}", rand::random::<u128>()) }
    }

    /// The value with special characters.
    pub(super) fn value(&self) -> String {
        format!("{}-';$(touch /tmp/owned)`id`\"\\\n\u{e9}%s", self.core)
    }

    /// As above, for a field that accepts fewer characters.
    pub(super) fn plain(&self) -> String {
        format!("{}-.$@", self.core)
    }

    /// Raw, as in JSON, a shell and a URL; as bytes printed by Postgres; and within base64.
    pub(super) fn spellings(&self) -> Vec<String> {
        let core = self.core.as_bytes();
        // Base64 mixes neighbouring bytes, so only the characters in the middle depend on the value alone.
        let shifted = (0..3).map(|before| {
            let text = STANDARD_NO_PAD.encode([&[0; 2][..before], core].concat());
            text[4..text.len() - 4].to_owned()
        });
        [self.core.clone(), hex(core)].into_iter().chain(shifted).collect()
    }
}

/// All secrets of a test.
pub(super) struct Secrets(pub(super) Vec<Planted>);

impl Secrets {
    pub(super) fn new(names: &[&'static str]) -> Self {
        Self(names.iter().map(|name| Planted::new(name)).collect())
    }

    pub(super) fn value(&self, name: &str) -> String {
        self.named(name).value()
    }

    pub(super) fn named(&self, name: &str) -> &Planted {
        self.0.iter().find(|one| one.name == name).unwrap()
    }

    /// The fields of a job that carry them.
    pub(super) fn give_to(&self, job: &mut Value) {
        job["secret_env_vars"] = json!({"HF_TOKEN": self.value("secret_env_vars")});
        job["docker_env_vars"] =
            json!({"WANDB_API_KEY": self.value("docker_env_vars"), "WANDB_PROJECT": "x"});
        job["cloud_metadata"] = json!({
            "aws": {"bucket": {"access_key": "x", "secret_key": self.value("cloud_metadata")}},
        });
    }

    /// The names of the secrets that a text contains.
    pub(super) fn within(&self, text: &[u8]) -> Vec<&'static str> {
        let text = String::from_utf8_lossy(text);
        let holds = |spelling: &String| text.contains(spelling.as_str());
        self.0.iter().filter(|one| one.spellings().iter().any(holds)).map(|one| one.name).collect()
    }

    /// One encoding per line, for `grep -f`.
    pub(super) fn patterns(&self) -> String {
        self.0.iter().flat_map(Planted::spellings).map(|spelling| spelling + "\n").collect()
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[test]
fn a_planted_value_is_found_in_every_encoding() {
    let secrets = Secrets::new(&["it"]);
    let value = secrets.value("it");
    let bytes = |before: usize| [&b"abcd"[..before], value.as_bytes(), b"z"].concat();
    let mut spelled = vec![value.clone(), json!(value).to_string()];
    spelled.extend((0..4).map(|before| STANDARD_NO_PAD.encode(bytes(before))));
    spelled.push(hex(value.as_bytes()));
    for text in spelled {
        assert_eq!(secrets.within(format!("x{text}y").as_bytes()), ["it"], "{text}");
    }
    assert!(secrets.within(b"another").is_empty());
}
