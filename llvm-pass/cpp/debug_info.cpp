// Questions to debug info that LLVM's C interface cannot ask.

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"
#include "llvm-c/Core.h"

using namespace llvm;

namespace {

// Typedefs and qualifiers say nothing about layout.
DIType *strip(DIType *T) {
  while (auto *D = dyn_cast_or_null<DIDerivedType>(T)) {
    switch (D->getTag()) {
    case dwarf::DW_TAG_typedef:
    case dwarf::DW_TAG_const_type:
    case dwarf::DW_TAG_volatile_type:
    case dwarf::DW_TAG_restrict_type:
    case dwarf::DW_TAG_atomic_type:
      T = D->getBaseType();
      continue;
    default:
      return T;
    }
  }
  return T;
}

DIType *type(LLVMMetadataRef M) { return strip(dyn_cast_or_null<DIType>(unwrap(M))); }

DILocalVariable *variable(ArrayRef<DbgVariableRecord *> Records) {
  // An expression means that the value is not the variable itself.
  for (DbgVariableRecord *R : Records)
    if (R->getExpression()->getNumElements() == 0 && R->getNumVariableLocationOps() == 1)
      return R->getVariable();
  return nullptr;
}

// How well a variable's name tells what it is: what the user named, then the object that a member function belongs to (the
// outermost of several), then what the library names.
uint64_t telling(DILocalVariable *V) {
  if (V->getName().starts_with("_"))
    return 0;
  if (V->getName() != "this")
    return ~uint64_t(0);
  auto *Pointer = dyn_cast_or_null<DIDerivedType>(strip(V->getType()));
  DIType *Class = Pointer ? strip(Pointer->getBaseType()) : nullptr;
  return 1 + (Class ? Class->getSizeInBits() : 0);
}

// Whether a base class has no data, so that it takes up no room of its own.
bool isEmpty(DIType *T) {
  auto *C = dyn_cast_or_null<DICompositeType>(T);
  if (!C || C->isForwardDecl())
    return false;
  for (DINode *Node : C->getElements()) {
    auto *Member = dyn_cast_or_null<DIDerivedType>(Node);
    if (!Member || Member->isStaticMember())
      continue;
    if (Member->getTag() == dwarf::DW_TAG_member ||
        (Member->getTag() == dwarf::DW_TAG_inheritance && !isEmpty(strip(Member->getBaseType()))))
      return false;
  }
  return true;
}

} // namespace

extern "C" {

struct SdString {
  const char *Data;
  size_t Length;
};

static SdString text(StringRef S) { return {S.data(), S.size()}; }

LLVMMetadataRef sd_scope_subprogram(LLVMMetadataRef Scope) {
  auto *Local = dyn_cast_or_null<DILocalScope>(unwrap(Scope));
  return wrap(Local ? Local->getSubprogram() : nullptr);
}

// The scope around a subprogram, namespace or type.
LLVMMetadataRef sd_scope_parent(LLVMMetadataRef Scope) {
  auto *S = dyn_cast_or_null<DIScope>(unwrap(Scope));
  return wrap(S ? S->getScope() : nullptr);
}

SdString sd_scope_name(LLVMMetadataRef Scope) {
  auto *S = dyn_cast_or_null<DIScope>(unwrap(Scope));
  return text(S && !isa<DIFile>(S) && !isa<DICompileUnit>(S) ? S->getName() : "");
}

SdString sd_linkage_name(LLVMMetadataRef Subprogram) {
  auto *S = dyn_cast_or_null<DISubprogram>(unwrap(Subprogram));
  return text(S ? S->getLinkageName() : "");
}

LLVMMetadataRef sd_global_variable(LLVMValueRef Global) {
  SmallVector<DIGlobalVariableExpression *, 1> Found;
  cast<GlobalVariable>(unwrap(Global))->getDebugInfo(Found);
  return wrap(Found.empty() ? nullptr : Found.front()->getVariable());
}

// The local variable that lives at this address: declared there, assigned there, or read through it.
LLVMMetadataRef sd_variable_at(LLVMValueRef Address) {
  Value *V = unwrap(Address);
  if (DILocalVariable *Declared = variable(findDVRDeclares(V)))
    return wrap(Declared);
  if (auto *I = dyn_cast<AllocaInst>(V))
    for (DbgVariableRecord *R : at::getDVRAssignmentMarkers(I))
      if (R->getAddress() == V && R->getAddressExpression()->getNumElements() == 0)
        return wrap(R->getVariable());
  for (DbgVariableRecord *R : findDVRValues(V))
    if (R->getExpression()->isDeref())
      return wrap(R->getVariable());
  return nullptr;
}

// The local variable that has this value.
LLVMMetadataRef sd_variable_of(LLVMValueRef Val) {
  DILocalVariable *Best = nullptr;
  for (DbgVariableRecord *R : findDVRValues(unwrap(Val))) {
    if (R->getExpression()->getNumElements() != 0 || R->getNumVariableLocationOps() != 1)
      continue;
    // A guard is an object whose only member is the pointer: that does not make it the pointer's name.
    if (unwrap(Val)->getType()->isPointerTy() && isa_and_nonnull<DICompositeType>(strip(R->getVariable()->getType())))
      continue;
    if (!Best || telling(R->getVariable()) > telling(Best))
      Best = R->getVariable();
  }
  return wrap(Best);
}

SdString sd_variable_name(LLVMMetadataRef Variable) { return text(cast<DIVariable>(unwrap(Variable))->getName()); }

LLVMMetadataRef sd_variable_type(LLVMMetadataRef Variable) {
  return wrap(strip(cast<DIVariable>(unwrap(Variable))->getType()));
}

// What a pointer or reference points to, or null.
LLVMMetadataRef sd_type_pointee(LLVMMetadataRef Type) {
  auto *D = dyn_cast_or_null<DIDerivedType>(type(Type));
  if (!D || (D->getTag() != dwarf::DW_TAG_pointer_type && D->getTag() != dwarf::DW_TAG_reference_type &&
             D->getTag() != dwarf::DW_TAG_rvalue_reference_type))
    return nullptr;
  return wrap(strip(D->getBaseType()));
}

// What an array is made of, or null.
LLVMMetadataRef sd_type_element(LLVMMetadataRef Type) {
  auto *C = dyn_cast_or_null<DICompositeType>(type(Type));
  return C && C->getTag() == dwarf::DW_TAG_array_type ? wrap(strip(C->getBaseType())) : nullptr;
}

uint64_t sd_type_bits(LLVMMetadataRef Type) {
  auto *T = type(Type);
  return T ? T->getSizeInBits() : 0;
}

// Dimensions of an array beyond the first: the number of elements in one row.
uint64_t sd_array_row(LLVMMetadataRef Type) {
  auto *C = dyn_cast_or_null<DICompositeType>(type(Type));
  uint64_t Row = 1;
  if (!C || C->getTag() != dwarf::DW_TAG_array_type || !C->getElements())
    return 1;
  for (unsigned I = 1; I < C->getElements().size(); ++I)
    if (auto *Range = dyn_cast<DISubrange>(C->getElements()[I]))
      if (auto *Count = dyn_cast_if_present<ConstantInt *>(Range->getCount()))
        Row *= Count->getZExtValue();
  return Row;
}

// What a function returns, or null.
LLVMMetadataRef sd_return_type(LLVMValueRef Fn) {
  auto *F = dyn_cast<Function>(unwrap(Fn));
  DISubprogram *S = F ? F->getSubprogram() : nullptr;
  if (!S || !S->getType() || S->getType()->getTypeArray().size() == 0)
    return nullptr;
  return wrap(strip(S->getType()->getTypeArray()[0]));
}

// A letter for how values of the type are read; 0 if they are not scalars.
uint8_t sd_type_category(LLVMMetadataRef Type) {
  DIType *T = type(Type);
  if (auto *B = dyn_cast_or_null<DIBasicType>(T)) {
    switch (B->getEncoding()) {
    case dwarf::DW_ATE_boolean:
      return 'b';
    case dwarf::DW_ATE_float:
      return 'f';
    case dwarf::DW_ATE_signed:
      return 's';
    case dwarf::DW_ATE_unsigned:
      return 'u';
    // Signed and unsigned char are small numbers more often than letters.
    case dwarf::DW_ATE_signed_char:
      return B->getName() == "char" ? 'c' : 's';
    case dwarf::DW_ATE_unsigned_char:
      return 'u';
    default:
      return 0;
    }
  }
  if (auto *D = dyn_cast_or_null<DIDerivedType>(T))
    return D->getTag() == dwarf::DW_TAG_pointer_type ? 'p' : 0;
  auto *C = dyn_cast_or_null<DICompositeType>(T);
  return C && C->getTag() == dwarf::DW_TAG_enumeration_type ? 'e' : 0;
}

// The name and value of an enumeration's element; an empty name behind the last one.
SdString sd_enumerator(LLVMMetadataRef Type, uint32_t Index, int64_t *Value) {
  auto *C = dyn_cast_or_null<DICompositeType>(type(Type));
  if (!C || C->getTag() != dwarf::DW_TAG_enumeration_type || Index >= C->getElements().size())
    return text("");
  auto *E = dyn_cast_or_null<DIEnumerator>(C->getElements()[Index]);
  if (!E || E->getValue().getSignificantBits() > 64)
    return text("");
  *Value = E->getValue().getSExtValue();
  return text(E->getName());
}

// The member or base class of a struct, class or union that contains this bit: its type, name (empty for a base
// class) and where it begins; null if there is none.
LLVMMetadataRef sd_type_member(LLVMMetadataRef Type, uint64_t Bit, SdString *Name, uint64_t *Begin) {
  auto *C = dyn_cast_or_null<DICompositeType>(type(Type));
  if (!C || C->getTag() == dwarf::DW_TAG_array_type)
    return nullptr;
  for (DINode *Node : C->getElements()) {
    auto *Member = dyn_cast_or_null<DIDerivedType>(Node);
    if (!Member || Member->isStaticMember() ||
        (Member->getTag() != dwarf::DW_TAG_member && Member->getTag() != dwarf::DW_TAG_inheritance))
      continue;
    DIType *Inner = strip(Member->getBaseType());
    if (Member->getTag() == dwarf::DW_TAG_inheritance && isEmpty(Inner))
      continue;
    uint64_t Size = Member->getSizeInBits() ? Member->getSizeInBits() : (Inner ? Inner->getSizeInBits() : 0);
    if (Bit < Member->getOffsetInBits() || Bit >= Member->getOffsetInBits() + Size)
      continue;
    *Name = text(Member->getTag() == dwarf::DW_TAG_inheritance ? "" : Member->getName());
    *Begin = Member->getOffsetInBits();
    return wrap(Inner);
  }
  return nullptr;
}
}
