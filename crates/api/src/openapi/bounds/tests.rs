use std::{collections::BTreeSet, str::FromStr};

use domain::{ClusterName, ContainerRuntime, KeyName, Label, Mount, SbatchExport, Word};
use proptest::{prelude::*, string::string_regex};
use regex::Regex;
use remote::NetrcWord;
use slurm::{
    Account, ComponentName, EnvKey, GpuRequest, GresName, GresType, Licenses, MailAddress, Memory,
    OptionName, OptionText, Partition, Qos, RemotePath, Reservation, Switches, UserName,
};
use test_case::test_case;

use super::*;

/// A field's schema; of an object that can be null, the object's.
fn field<'a>(document: &'a Value, schema: &str, name: &str) -> &'a Value {
    let field = &document["components"]["schemas"][schema]["properties"][name];
    let object = field["oneOf"][0]["$ref"].as_str();
    object.and_then(|place| document.pointer(place.trim_start_matches('#'))).unwrap_or(field)
}

#[test]
fn every_bound_is_in_the_document() {
    let document = crate::openapi();
    for (schema, name, bound) in bounds() {
        let field = field(&document, schema, name);
        let is_there = match bound {
            Text(pattern, most) => field["pattern"] == *pattern && field["maxLength"] == most,
            Whole(least, most) => field["minimum"] == least && field["maximum"] == most,
            Signed(most) => field["minimum"] == -i64::from(most) && field["maximum"] == most,
            Options(pattern, _, most) => {
                field["propertyNames"]["pattern"] == *pattern
                    && field["additionalProperties"]["minLength"] == 1
                    && field["maxProperties"] == most
            }
            Hours => field["maximum"] == 1_000_000,
            Different(pattern, most) => {
                let items = &field["items"];
                items["pattern"] == *pattern && items["maxLength"] == most && field["uniqueItems"] == true
            }
            Texts(pattern, most) => {
                field["items"]["pattern"] == *pattern && field["items"]["maxLength"] == most
            }
            Keys(pattern, _, most) => {
                field["propertyNames"]["pattern"] == *pattern && field["maxProperties"] == most
            }
            Map(pattern, _, longest, most) => {
                field["propertyNames"]["pattern"] == *pattern
                    && field["additionalProperties"]["maxLength"] == longest
                    && field["maxProperties"] == most
            }
        };
        assert!(is_there, "{schema}.{name}: {field}");
    }
}

/// Adds the places of the texts in `part`, and in the schemas that it names, that may be of any length.
fn boundless(
    document: &Value,
    part: &Value,
    place: &str,
    seen: &mut BTreeSet<String>,
    found: &mut Vec<String>,
) {
    let is_text = part["type"] == "string" || part["type"][0] == "string";
    if is_text && ["maxLength", "enum", "format"].iter().all(|limit| part.get(limit).is_none()) {
        found.push(place.to_owned());
    }
    match part {
        Value::Object(fields) => {
            for (key, value) in fields {
                boundless(document, value, &format!("{place}/{key}"), seen, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                boundless(document, item, place, seen, found);
            }
        }
        Value::String(text) => {
            if let Some(name) = text.strip_prefix("#/components/schemas/")
                && seen.insert(name.to_owned())
            {
                boundless(document, &document["components"]["schemas"][name], name, seen, found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_text_of_a_request_has_a_longest_length() {
    let mut document = crate::openapi();
    let bodies: Vec<Value> =
        operations(&mut document).filter_map(|operation| operation.get("requestBody").cloned()).collect();
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for body in &bodies {
        boundless(&document, body, "", &mut seen, &mut found);
    }
    assert!(seen.contains("BalanceRequest"), "{seen:?}");
    assert_eq!(found, [""; 0]);
}

#[test]
fn memory_and_launchers_as_a_text_have_their_forms() {
    let document = crate::openapi();
    let kinds = ["plain", "per_node", "torchrun", "accelerate", "deepspeed", "mpi", "ray"];
    assert_eq!(document["components"]["schemas"]["LauncherBody"]["oneOf"][0]["enum"], json!(kinds));
    assert_eq!(document["components"]["schemas"]["MemoryBody"]["oneOf"][0]["pattern"], MEMORY);
}

#[test]
fn every_example_of_a_text_has_its_form() {
    let document = crate::openapi();
    for (schema, name, bound) in bounds() {
        let field = field(&document, schema, name);
        let (pattern, examples) = match bound {
            Text(pattern, _) => (pattern, &field["examples"]),
            Different(pattern, _) | Texts(pattern, _) => (pattern, &field["items"]["examples"]),
            Whole(..) | Signed(_) | Hours | Keys(..) | Map(..) | Options(..) => continue,
        };
        for example in examples.as_array().into_iter().flatten() {
            let fits = example.as_str().is_some_and(|text| Regex::new(pattern).unwrap().is_match(text));
            assert!(fits, "{schema}.{name}: {example}");
        }
    }
}

fn reads<T: FromStr>(text: &str) -> bool {
    text.parse::<T>().is_ok()
}

/// Few letters, so that much of it nearly has some form.
const NEARLY: &str = r"[aZ9._/:,@+$#~ é\u0000-]{0,8}";

/// The form with at most three of what there may be any number of, so that no text is longer than names may be.
fn short(form: &str) -> String {
    let repeated = ["]", ")", "/"].into_iter().flat_map(|end| [(end, "*", "{0,3}"), (end, "+", "{1,3}")]);
    let plain = form.trim_start_matches('^').trim_end_matches('$').to_owned();
    repeated.fold(plain, |text, (end, any, few)| text.replace(&format!("{end}{any}"), &format!("{end}{few}")))
}

// What the document allows is read, and what is read is allowed by the document: the two are one rule.
#[test_case(WORD, reads::<Word> ; "words")]
#[test_case(COMPONENT, reads::<ComponentName> ; "components")]
#[test_case(PLAIN, reads::<Label> ; "texts for people")]
#[test_case(CLUSTER, reads::<ClusterName> ; "clusters")]
#[test_case(USER, reads::<UserName> ; "users")]
#[test_case(PARTITION, reads::<Partition> ; "partitions")]
#[test_case(PARTITION, reads::<Account> ; "accounts")]
#[test_case(ENV_KEY, reads::<EnvKey> ; "variables")]
#[test_case(PATH, reads::<RemotePath> ; "paths")]
#[test_case(MOUNT, reads::<Mount> ; "mounts")]
#[test_case(KEY_NAME, reads::<KeyName> ; "keys")]
#[test_case(EMAIL, reads::<MailAddress> ; "addresses")]
#[test_case(SBATCH_EXPORT, reads::<SbatchExport> ; "what is exported")]
#[test_case(GRES_NAME, reads::<GresName> ; "resources")]
#[test_case(GRES_TYPE, reads::<GresType> ; "types of resources")]
#[test_case(MEMORY, reads::<Memory> ; "memory")]
#[test_case(RESERVATION, reads::<Reservation> ; "reservations")]
#[test_case(PARTITION, reads::<Qos> ; "QOS")]
#[test_case(LICENSES, reads::<Licenses> ; "licenses")]
#[test_case(SWITCHES, reads::<Switches> ; "switches")]
#[test_case(OPTION_NAME, reads::<OptionName> ; "names of options")]
#[test_case(OPTION_TEXT, reads::<OptionText> ; "values of options")]
#[test_case(GPU_REQUEST, reads::<GpuRequest> ; "how GPUs are asked for")]
#[test_case(RUNTIME, reads::<ContainerRuntime> ; "what makes containers")]
#[test_case(LOGIN, reads::<NetrcWord> ; "logins")]
#[test_case(PASSWORD, |text| NetrcWord::password(text).is_ok() ; "passwords")]
fn a_form_and_its_type_agree(form: &str, is_read: fn(&str) -> bool) {
    let allowed = string_regex(&short(form)).unwrap();
    proptest!(|(text in allowed)| {
        prop_assert!(is_read(&text), "{:?} is not read", text);
    });
    let form = Regex::new(form).unwrap();
    proptest!(|(text in NEARLY)| {
        prop_assert_eq!(is_read(&text), form.is_match(&text), "{:?}", text);
    });
}
