// Registers the pass's two stages with Clang's pass manager. What they do is in Rust.

#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
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

} // namespace

extern "C" void symdpor_register_stages(PassBuilder &PB) {
  PB.registerPipelineStartEPCallback([](ModulePassManager &MPM, OptimizationLevel Level) {
    MPM.addPass(StartStage(Level != OptimizationLevel::O0));
  });
  PB.registerOptimizerLastEPCallback(
      [](ModulePassManager &MPM, OptimizationLevel, ThinOrFullLTOPhase) { MPM.addPass(EndStage()); });
}
