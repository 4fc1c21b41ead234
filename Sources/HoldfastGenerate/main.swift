// Generates classes for a model. SwiftPM plugins run it; `holdfast generate` does the same for people.
import Foundation
import HoldfastModelCode
import HoldfastModelFile
import HoldfastStore

func fail(_ text: String, _ code: Int32) -> Never {
  FileHandle.standardError.write(Data(text.utf8))
  exit(code)
}

guard let arguments = Arguments(Array(CommandLine.arguments.dropFirst())), let path = arguments.model else { fail(Arguments.usage, 64) }
do {
  let model = try ManagedObjectModel(contentsOf: path)
  let stem = URL(fileURLWithPath: path).deletingPathExtension().lastPathComponent
  let code = ModelCode(model, name: arguments.name ?? stem, access: arguments.access)
  if let file = arguments.file {
    try code.writeSingleFile(to: file)
  } else if let folder = arguments.folder {
    let outdated = arguments.isCheck ? try code.outdatedFiles(in: folder) : try code.write(to: folder)
    let orphans = try code.orphanedFiles(in: folder)
    for name in outdated { print(arguments.isCheck ? "outdated: \(name)" : "written: \(name)") }
    for name in orphans { print("of no entity: \(name)") }
    for note in code.notes { print("note: \(note)") }
    if arguments.isCheck && !(outdated.isEmpty && orphans.isEmpty) { exit(2) }
  }
} catch {
  fail("holdfast-generate: \(error)\n", 1)
}
