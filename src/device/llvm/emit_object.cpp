/* Implements code generation as LLVM's TargetMachine::addPassesToEmitFile does, without the
   scheduler of machine instructions. */
#include "emit_object.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

extern "C" bool emit_object(LLVMTargetMachineRef machine, LLVMModuleRef module,
                            void (*add)(void *, const void *, size_t), void *user) {
  auto &target =
      static_cast<llvm::LLVMTargetMachine &>(*reinterpret_cast<llvm::TargetMachine *>(machine));
  llvm::legacy::PassManager passes;
  auto *info = new llvm::MachineModuleInfoWrapperPass(&target);
  llvm::TargetPassConfig *config = target.createPassConfig(passes);
  config->setDisableVerify(true);
  config->disablePass(&llvm::MachineSchedulerID);
  passes.add(config); // the manager owns its passes
  passes.add(info);
  if (config->addISelPasses()) return false;
  config->addMachinePasses();
  config->setInitialized();
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out(object);
  if (target.addAsmPrinter(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile,
                           info->getMMI().getContext()))
    return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(*llvm::unwrap(module));
  add(user, object.data(), object.size());
  return true;
}
