//! The programs of a job that has several: steps, and services beside them.

use std::collections::{BTreeMap, BTreeSet};

use slurm::ComponentName;

use super::{
    component::{JobComponent, variable},
    component_body::ComponentRequest,
    component_settings::ComponentSettings,
    copies::copies,
    launcher::Launcher,
    secret::Secrets,
    service::ServiceSettings,
    text::is_blank,
};
use crate::violation::Faults;

/// The supervisor's room for their ends is bounded.
const MOST: usize = 24;
const MAX_COMMAND: usize = 256 * 1024;
const MOST_MINUTES: u32 = 365 * 24 * 60;
/// A service of such a name would change `MASTER_PORT`, `RAY_HEAD_HOST` or a variable of Slurm for the other programs.
const OF_LAUNCHERS: [&str; 3] = ["MASTER", "RAY_HEAD", "SLURM"];

/// The programs of a request, before they have their nodes: services first. Their secret variables go to `secrets`.
pub(super) fn components(
    services: &[ComponentRequest],
    steps: &[ComponentRequest],
    secrets: &mut Secrets,
    faults: &mut Faults,
) -> Vec<JobComponent> {
    if steps.is_empty() {
        faults.add("/steps", "required", "must have at least one step: the job ends with its steps");
    }
    if services.len() + steps.len() > MOST {
        faults.add(
            "/steps",
            "too_many",
            format_args!("must have at most {MOST} steps and services together"),
        );
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let mut read = |list: &'static str, place: usize, asked: &ComponentRequest| {
        let at = format!("/{list}/{place}");
        let (is_service, with_previous) = (list == "services", asked.with_previous == Some(true));
        if is_blank(&asked.command) || asked.command.len() > MAX_COMMAND || asked.command.contains('\0') {
            let detail = format_args!("must be 1 to {MAX_COMMAND} bytes without NUL");
            faults.add(format!("{at}/command"), "invalid", detail);
        }
        if with_previous && (is_service || place == 0) {
            let detail = "is only for a step that has another one before it";
            faults.add(format!("{at}/with_previous"), "contradiction", detail);
        }
        if let Some(minutes) = asked.timeout_minutes {
            faults.within(&format!("{at}/timeout_minutes"), minutes, 1..=MOST_MINUTES);
        }
        let continue_on_error = asked.continue_on_error == Some(true);
        if continue_on_error && is_service {
            let detail = "is only for a step: see max_restarts of a service";
            faults.add(format!("{at}/continue_on_error"), "contradiction", detail);
        }
        let service = ServiceSettings::from_request(asked, is_service, &at, faults);
        if asked.nodes == Some(0) {
            faults.add(format!("{at}/nodes"), "out_of_range", "must be at least 1");
        }
        let launcher = asked
            .launcher
            .as_ref()
            .and_then(|body| Launcher::from_request(body, &format!("{at}/launcher"), faults));
        let name: Option<ComponentName> = faults.parse(&format!("{at}/name"), &asked.name);
        let (own, secret) = ComponentSettings::from_request(asked, &at, faults);
        if name.as_ref().is_some_and(|name| !names.insert(variable(name))) {
            faults.add(format!("{at}/name"), "contradiction", "is the name of another step or service");
        }
        let name = name?;
        if is_service && OF_LAUNCHERS.contains(&variable(&name).as_str()) {
            let detail = "is reserved: launchers read variables that begin so; use another name";
            faults.add(format!("{at}/name"), "reserved", detail);
        }
        if !secret.is_empty() {
            secrets.components.insert(name.clone(), secret);
        }
        Some(JobComponent {
            name,
            text: asked.command.clone(),
            is_service,
            with_previous,
            first_node: 0,
            nodes: asked.nodes.unwrap_or(0),
            launcher,
            timeout_minutes: asked.timeout_minutes,
            own,
            continue_on_error,
            service,
            copy_of: None,
            balances: None,
        })
    };
    let mut list = Vec::new();
    for (place, asked) in services.iter().enumerate() {
        list.push(
            read("services", place, asked).map(|service| (format!("/services/{place}"), service, asked)),
        );
    }
    let steps: Vec<_> = steps.iter().enumerate().map(|(at, asked)| read("steps", at, asked)).collect();
    let services = list.into_iter().flatten();
    let services: Vec<_> =
        services.flat_map(|(at, service, asked)| copies(service, asked, &at, secrets, faults)).collect();
    let list: Vec<_> = services.into_iter().chain(steps.into_iter().flatten()).collect();
    check_together(&list, faults);
    list
}

/// Copies of services are programs, too.
fn check_together(list: &[JobComponent], faults: &mut Faults) {
    if list.len() > MOST {
        let detail = format_args!(
            "are {} programs with all copies of services; at most {MOST} are allowed",
            list.len()
        );
        faults.add("/services", "too_many", detail);
    }
    for copy in list.iter().filter(|component| component.copy_of.is_some()) {
        let same = list.iter().filter(|other| variable(&other.name) == variable(&copy.name));
        if same.count() > 1 {
            let detail = format_args!("has a copy of the name {}, as another program of the job", copy.name);
            faults.add("/services", "contradiction", detail);
        }
    }
}

/// Gives each program its nodes of the job's. A step that starts with another one has the nodes after that one's, if so many are
/// left; otherwise they share.
pub(super) fn place(components: &mut [JobComponent], nodes: u32, faults: &mut Faults) {
    let mut taken = 0_u32;
    let mut firsts = BTreeMap::new();
    for service in components.iter_mut().filter(|component| component.is_service) {
        service.nodes = service.nodes.max(1);
        if let Some(first) = &service.balances {
            service.first_node = firsts.get(first).copied().unwrap_or_default();
            continue;
        }
        firsts.insert(service.name.clone(), taken);
        service.first_node = taken;
        taken = taken.saturating_add(service.nodes);
    }
    if taken > nodes {
        let detail = format_args!("need {taken} nodes together; the job has {nodes}");
        faults.add("/services", "contradiction", detail);
        return;
    }
    let (first, left) = if taken < nodes { (taken, nodes - taken) } else { (0, nodes) };
    let mut next = first;
    for (place, step) in components.iter_mut().filter(|component| !component.is_service).enumerate() {
        step.nodes = if step.nodes == 0 { left } else { step.nodes };
        if step.nodes > left {
            let detail = format_args!("is {}; at most {left} nodes are left for steps", step.nodes);
            faults.add(format!("/steps/{place}/nodes"), "contradiction", detail);
        }
        let fits = step.with_previous && next.saturating_add(step.nodes) <= first + left;
        step.first_node = if fits { next } else { first };
        next = step.first_node.saturating_add(step.nodes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use test_case::test_case;

    use super::*;

    /// The nodes of each program, and the places of all faults.
    fn placed(services: Value, steps: Value, nodes: u32) -> (Vec<(u32, u32)>, Vec<String>) {
        let mut faults = Faults::default();
        let read = |list| serde_json::from_value::<Vec<ComponentRequest>>(list).unwrap();
        let mut all = components(&read(services), &read(steps), &mut Secrets::default(), &mut faults);
        place(&mut all, nodes, &mut faults);
        let nodes = all.iter().map(|component| (component.first_node, component.nodes)).collect();
        (nodes, faults.0.into_iter().map(|fault| fault.pointer).collect())
    }

    fn named(name: &str, more: Value) -> Value {
        let Value::Object(more) = more else { unreachable!() };
        let mut body = json!({"name": name, "command": "true"});
        body.as_object_mut().unwrap().extend(more);
        body
    }

    #[test]
    fn steps_get_the_nodes_that_services_leave() {
        let services = json!([named("a", json!({"nodes": 2})), named("b", json!({}))]);
        let steps = json!([named("c", json!({})), named("d", json!({"nodes": 1}))]);
        assert_eq!(placed(services, steps, 5), (vec![(0, 2), (2, 1), (3, 2), (3, 1)], vec![]));
    }

    #[test]
    fn on_one_node_all_share_it() {
        let (services, steps) = (json!([named("a", json!({}))]), json!([named("b", json!({}))]));
        assert_eq!(placed(services, steps, 1), (vec![(0, 1), (0, 1)], vec![]));
    }

    #[test]
    fn concurrent_steps_are_apart_if_they_fit() {
        let with = json!({"nodes": 1, "with_previous": true});
        let steps = json!([named("a", json!({"nodes": 1})), named("b", with.clone()), named("c", with)]);
        assert_eq!(placed(json!([]), steps, 2), (vec![(0, 1), (1, 1), (0, 1)], vec![]));
    }

    #[test_case(json!([]), json!([]), "/steps" ; "no step")]
    #[test_case(json!([named("a", json!({"nodes": 3}))]), json!([named("b", json!({}))]), "/services" ; "too many nodes")]
    #[test_case(json!([]), json!([named("b", json!({"nodes": 3}))]), "/steps/0/nodes" ; "a step with too many")]
    #[test_case(json!([]), json!([named("a-b", json!({})), named("a_b", json!({}))]), "/steps/1/name" ; "one variable")]
    #[test_case(json!([]), json!([named("A", json!({}))]), "/steps/0/name" ; "no name")]
    #[test_case(json!([named("ray-head", json!({}))]), json!([named("b", json!({}))]), "/services/0/name" ; "variables of a launcher")]
    #[test_case(json!([]), json!([named("a", json!({"with_previous": true}))]), "/steps/0/with_previous" ; "with nothing")]
    #[test_case(json!([]), json!([named("a", json!({"launcher": "x"}))]), "/steps/0/launcher" ; "no launcher")]
    fn what_is_no_program_is_refused_with_its_place(services: Value, steps: Value, pointer: &str) {
        assert_eq!(placed(services, steps, 2).1, [pointer]);
    }
}
