use super::{UnitIn, UnitOut};
use crate::shape::Shape;
use heddle_hdl::{Signal, TypedModule, Width};
pub fn path_table(_s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    unimplemented!()
}
