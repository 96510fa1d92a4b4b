//! What a request wants to be run: exactly one of the two shapes.

use serde_json::Value;

use super::{Work, faults::Faults};
use crate::request::body::JobRequest;

const MAX_COMMAND: usize = 256 * 1024;

pub(super) fn work(request: JobRequest, image_named: bool, faults: &mut Faults) -> Option<Work> {
    match (request.network_arch, request.action, request.command) {
        (Some(network_arch), Some(action), None) => {
            if !image_named {
                faults.add("/image", "required", "a TAO job needs the container image to run in");
            }
            let specs = Value::Object(request.specs.unwrap_or_default());
            let network_arch = faults.parse("/network_arch", &network_arch);
            let action = faults.parse("/action", &action);
            Some(Work::Tao { network_arch: network_arch?, action: action?, specs })
        }
        (None, None, Some(text)) => {
            if request.specs.is_some() {
                faults.add("/specs", "contradiction", "belongs to a TAO job; a command does not read it");
            }
            if text.trim().is_empty() || text.len() > MAX_COMMAND || text.contains('\0') {
                faults.add(
                    "/command",
                    "invalid",
                    format_args!("must be 1 to {MAX_COMMAND} bytes without NUL"),
                );
            }
            Some(Work::Command { text })
        }
        (Some(_), None, None) => {
            faults.add(
                "/action",
                "required",
                "network_arch says a TAO job, which needs an action such as `train`",
            );
            None
        }
        (None, Some(_), None) => {
            faults.add("/network_arch", "required", "action says a TAO job, which needs a network_arch");
            None
        }
        (None, None, None) => {
            faults.add("", "required", "say what to run: network_arch and action, or command");
            None
        }
        (_, _, Some(_)) => {
            faults.add("/command", "contradiction", "give network_arch and action, or command, not both");
            None
        }
    }
}
