// Registers the pass's two stages with Clang's pass manager. What they do is in Rust.

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm-c/Types.h"

using namespace llvm;

extern "C" void symdpor_stage_start(LLVMModuleRef M, bool Optimised);
extern "C" void symdpor_stage_end(LLVMModuleRef M);

namespace {

struct StartStage : PassInfoMixin<StartStage> {
  bool Optimised;
  explicit StartStage(bool Optimised) : Optimised(Optimised) {}
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    symdpor_stage_start(wrap(&M), Optimised);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

struct EndStage : PassInfoMixin<EndStage> {
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    symdpor_stage_end(wrap(&M));
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

// Loop-invariant code motion keeps a variable in a register through a loop, and for that reads it before the loop even
// where the loop would not have read it (`if (c) d += 5;`): an access that the program does not make. No attribute of
// a function forbids this, only the compiler's own option does.
void forbidPromotion() {
  auto &Options = cl::getRegisteredOptions();
  auto Found = Options.find("disable-licm-promotion");
  if (Found == Options.end())
    report_fatal_error("symdpor: this compiler has no option disable-licm-promotion; LLVM 22 is needed");
  static_cast<cl::opt<bool> *>(Found->second)->setValue(true);
}

} // namespace

extern "C" void symdpor_register_stages(PassBuilder &PB) {
  forbidPromotion();
  PB.registerPipelineStartEPCallback([](ModulePassManager &MPM, OptimizationLevel Level) {
    MPM.addPass(StartStage(Level != OptimizationLevel::O0));
  });
  PB.registerOptimizerLastEPCallback(
      [](ModulePassManager &MPM, OptimizationLevel, ThinOrFullLTOPhase) { MPM.addPass(EndStage()); });
}
