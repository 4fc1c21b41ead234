import Foundation
public import HoldfastModelCode

/// Generates Swift classes for a model.
public enum ModelGenerate {
  /// What a run wrote, or would write.
  public struct Result: Sendable, Equatable {
    /// The names of the files that were written, or that a check found to be outdated.
    public let files: [String]
    /// Generated files of entities that the model no longer has.
    public let orphans: [String]
    /// What the classes can't declare, and what a compiled model contains and they lack, in sentences.
    public let notes: [String]
  }

  /// Writes the classes of a model into a folder, or with `isCheck` only compares them.
  ///
  /// - Parameters:
  ///   - input: The model in any format, or a store.
  ///   - folder: The folder. It is created if it is missing.
  ///   - version: The version of the model. Defaults to the current one.
  ///   - access: Whether other modules can use the classes.
  ///   - isCheck: Whether nothing is written.
  /// - Throws: ``CommandError`` if the model can't be read, or a file can't be read or written.
  public static func run(
    _ input: String, to folder: String, version: String? = nil, access: ModelCode.Access = .internal, isCheck: Bool = false
  ) throws(CommandError) -> Result {
    let source = try ModelSource(path: input), chosen = try source.version(version)
    let stem = URL(fileURLWithPath: input).deletingPathExtension().lastPathComponent
    let code = ModelCode(chosen.model, name: stem, access: access)
    do throws(ModelCodeError) {
      let files = isCheck ? try code.outdatedFiles(in: folder) : try code.write(to: folder)
      return Result(files: files, orphans: try code.orphanedFiles(in: folder), notes: chosen.notes + code.notes)
    } catch { throw CommandError(path: error.path, reason: error.reason, cause: error.cause) }
  }
}
