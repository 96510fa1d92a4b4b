//! How a fake cluster answers any command: with the function for that type of command.

use std::any::Any;

use remote::RemoteCommand;

/// The answer to `command`, if it is a `K`.
pub fn answer_to<C: RemoteCommand, K: RemoteCommand, E>(
    command: &C,
    answer: impl FnOnce(&K) -> Result<K::Output, E>,
) -> Option<Result<C::Output, E>> {
    let known = (command as &dyn Any).downcast_ref::<K>()?;
    match answer(known) {
        Ok(output) => (Box::new(output) as Box<dyn Any>).downcast().ok().map(|output| Ok(*output)),
        Err(error) => Some(Err(error)),
    }
}
