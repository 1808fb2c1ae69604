//! `weir-bindgen MODULE.wasm FOLDER`: writes the module and its JavaScript, for browsers, into a folder.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let [module, folder] = words.as_slice() else {
        eprintln!("weir-bindgen: give a module and a folder");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    let Ok(web) = bindgen.web(true) else {
        eprintln!("weir-bindgen: the target `web` is taken");
        return ExitCode::from(2);
    };
    // Names of functions are a third of a megabyte that no page needs.
    let smaller = web.remove_name_section(true).remove_producers_section(true);
    match smaller.input_path(module).out_name("weir").typescript(true).generate(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weir-bindgen: {error:?}");
            ExitCode::FAILURE
        }
    }
}
