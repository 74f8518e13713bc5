// What LLVM's C interface lacks. Each function is a question or a single edit; decisions are made in Rust.

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include "llvm-c/Core.h"

using namespace llvm;

extern "C" {

// Whether a call leaves no copy of its argument's address behind.
bool sd_does_not_capture(LLVMValueRef Call, unsigned Argument) {
  return cast<CallBase>(unwrap(Call))->doesNotCapture(Argument);
}

// Takes "this loop ends" out of a terminator's loop metadata.
void sd_drop_loop_mustprogress(LLVMValueRef Terminator) {
  auto *I = cast<Instruction>(unwrap(Terminator));
  MDNode *Loop = I->getMetadata(LLVMContext::MD_loop);
  if (!Loop)
    return;
  SmallVector<Metadata *, 4> Kept{nullptr};
  for (const MDOperand &Op : drop_begin(Loop->operands())) {
    auto *Node = dyn_cast<MDNode>(Op.get());
    auto *Name = Node && Node->getNumOperands() ? dyn_cast<MDString>(Node->getOperand(0)) : nullptr;
    if (!Name || Name->getString() != "llvm.loop.mustprogress")
      Kept.push_back(Op.get());
  }
  if (Kept.size() == Loop->getNumOperands())
    return;
  MDNode *Fresh = Kept.size() == 1 ? nullptr : MDNode::getDistinct(I->getContext(), Kept);
  if (Fresh)
    Fresh->replaceOperandWith(0, Fresh);
  I->setMetadata(LLVMContext::MD_loop, Fresh);
}

// Says of a call that it always comes back and that no memory of the program is involved.
void sd_set_harmless(LLVMValueRef Call) {
  auto *Base = cast<CallBase>(unwrap(Call));
  Base->setMemoryEffects(MemoryEffects::inaccessibleMemOnly());
  Base->setDoesNotThrow();
  Base->addFnAttr(Attribute::WillReturn);
}

// Says of a call that its result follows from its arguments alone.
void sd_set_pure(LLVMValueRef Call) {
  auto *Base = cast<CallBase>(unwrap(Call));
  Base->setMemoryEffects(MemoryEffects::none());
  Base->setDoesNotThrow();
  Base->addFnAttr(Attribute::WillReturn);
}

// The first place in a block where code may go: behind phis and the landing pad.
LLVMValueRef sd_first_insertion_point(LLVMBasicBlockRef Block) {
  BasicBlock *BB = unwrap(Block);
  auto It = BB->getFirstInsertionPt();
  return It == BB->end() ? nullptr : wrap(&*It);
}

// A block that is reached only when the invoke has returned.
LLVMBasicBlockRef sd_split_normal_edge(LLVMValueRef Invoke) {
  auto *I = cast<InvokeInst>(unwrap(Invoke));
  BasicBlock *To = I->getNormalDest();
  return wrap(To->getSinglePredecessor() ? To : SplitEdge(I->getParent(), To));
}

// Makes a block of its own of what begins with an instruction.
LLVMBasicBlockRef sd_split_before(LLVMValueRef I) {
  auto *Inst = cast<Instruction>(unwrap(I));
  return wrap(Inst->getParent()->splitBasicBlock(Inst));
}

// Has a branch go elsewhere.
void sd_redirect(LLVMValueRef Branch, unsigned Successor, LLVMBasicBlockRef Target) {
  auto *I = cast<Instruction>(unwrap(Branch));
  I->getSuccessor(Successor)->removePredecessor(I->getParent(), /*KeepOneInputPHIs=*/true);
  I->setSuccessor(Successor, unwrap(Target));
}

void sd_append_to_used(LLVMModuleRef M, LLVMValueRef Global) {
  appendToUsed(*unwrap(M), {cast<GlobalValue>(unwrap(Global))});
}

// Keeps the optimiser, but not the linker, from removing or splitting variables.
void sd_append_to_compiler_used(LLVMModuleRef M, LLVMValueRef *Globals, size_t Count) {
  SmallVector<GlobalValue *, 16> Values;
  for (LLVMValueRef Global : ArrayRef(Globals, Count))
    Values.push_back(cast<GlobalValue>(unwrap(Global)));
  appendToCompilerUsed(*unwrap(M), Values);
}

void sd_append_to_constructors(LLVMModuleRef M, LLVMValueRef Function, int Priority) {
  appendToGlobalCtors(*unwrap(M), cast<llvm::Function>(unwrap(Function)), Priority);
}

// The object an address is computed from, how far into it the address points, and whether an index that is not
// constant took part.
LLVMValueRef sd_pointer_base(LLVMModuleRef M, LLVMValueRef Pointer, int64_t *Offset, bool *Variable) {
  const DataLayout &DL = unwrap(M)->getDataLayout();
  Value *V = unwrap(Pointer);
  *Offset = 0;
  *Variable = false;
  while (true) {
    APInt Step(DL.getIndexTypeSizeInBits(V->getType()), 0);
    V = V->stripAndAccumulateConstantOffsets(DL, Step, /*AllowNonInbounds=*/true);
    *Offset += Step.getSExtValue();
    auto *Gep = dyn_cast<GEPOperator>(V);
    if (!Gep || !Gep->getPointerOperandType()->isPointerTy() || Gep->getType()->isVectorTy())
      return wrap(V);
    *Variable = true;
    V = Gep->getPointerOperand();
  }
}

// Whether a function is a constructor of C++, by its name.
bool sd_is_constructor(LLVMValueRef F) {
  std::string Name = unwrap<Function>(F)->getName().str();
  ItaniumPartialDemangler Demangler;
  if (Demangler.partialDemangle(Name.c_str()) || !Demangler.isCtorOrDtor())
    return false;
  size_t Length = 0;
  char *Base = Demangler.getFunctionBaseName(nullptr, &Length);
  bool IsConstructor = Base && Base[0] != '~';
  std::free(Base);
  return IsConstructor;
}

// Whether the type has a size that is known when compiling.
bool sd_has_fixed_size(LLVMModuleRef M, LLVMTypeRef Ty) {
  Type *T = unwrap(Ty);
  return T->isSized() && !unwrap(M)->getDataLayout().getTypeStoreSize(T).isScalable();
}

// The bits of an integer or floating-point constant, 64 at a time; returns how many words there are.
unsigned sd_constant_word(LLVMValueRef Constant, unsigned Word, uint64_t *Bits) {
  Value *V = unwrap(Constant);
  APInt All = isa<ConstantInt>(V) ? cast<ConstantInt>(V)->getValue() : cast<ConstantFP>(V)->getValueAPF().bitcastToAPInt();
  *Bits = Word < All.getNumWords() ? All.getRawData()[Word] : 0;
  return All.getNumWords();
}

// The bytes of an array or vector of plain numbers.
const char *sd_constant_data(LLVMValueRef Constant, size_t *Length) {
  StringRef Data = cast<ConstantDataSequential>(unwrap(Constant))->getRawDataValues();
  *Length = Data.size();
  return Data.data();
}
}
