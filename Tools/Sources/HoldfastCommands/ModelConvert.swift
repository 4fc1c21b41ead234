import Foundation
import HoldfastModelFile
import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Writes a model in another form.
public enum ModelConvert {
  /// Reads a model in any form and writes it in the one that the ending of the second path says.
  ///
  /// | ending | what is written |
  /// |---|---|
  /// | `.xcdatamodeld` | all versions, as Xcode writes them |
  /// | `.xcdatamodel` | the current version, or the one that is named |
  /// | `.json` | the same, as Holdfast's stores keep their models |
  ///
  /// Xcode's own files come out as they were, with all that means nothing to a model.
  ///
  /// - Throws: ``CommandError``, also when a version that was to be written cannot be read; nothing is written then.
  public static func run(_ input: String, to output: String, version: String? = nil) throws(CommandError) {
    let source = try ModelSource(path: input)
    let isBundle = output.hasSuffix(".xcdatamodeld") || output.hasSuffix(".xcdatamodeld/")
    let all = isBundle && version == nil ? try source.allVersions() : []
    let chosen = try source.version(version)
    do {
      if isBundle {
        let written = version == nil ? all : [chosen]
        let documents = try written.map { ($0.name, try $0.document ?? ModelDocument($0.model)) }
        try ModelBundle.write(Dictionary(uniqueKeysWithValues: documents), currentVersion: chosen.name, to: output)
      } else if output.hasSuffix(".xcdatamodel") || output.hasSuffix(".xcdatamodel/") {
        try ModelBundle.write(try chosen.document ?? ModelDocument(chosen.model), to: output)
      } else if output.hasSuffix(".json") {
        try replace(output, with: JSONModelFile.data(of: chosen.model))
      } else {
        throw CommandError(path: output, reason: "The ending says no form of model. Give .xcdatamodeld, .xcdatamodel or .json.")
      }
    } catch let error as CommandError {
      throw error
    } catch {
      throw CommandError(path: output, reason: "The model cannot be written.", cause: error)
    }
  }

  /// Puts data in place of a file, all at once. It keeps the permissions of the file that it replaces; a new file is one that only its owner
  /// can read and write.
  private static func replace(_ path: String, with data: Data) throws {
    let url = URL(fileURLWithPath: path)
    let before = (try? FileManager.default.attributesOfItem(atPath: path))?[.posixPermissions] as? NSNumber
    let temporary = url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent).\(UUID().uuidString)").path
    let attributes = [FileAttributeKey.posixPermissions: before ?? NSNumber(value: 0o600)]
    guard FileManager.default.createFile(atPath: temporary, contents: data, attributes: attributes) else {
      throw CommandError(path: path, reason: "The file can't be created. Check that its folder exists and can be written.")
    }
    guard rename(temporary, path) == 0 else {
      let reason = String(cString: strerror(errno))
      try? FileManager.default.removeItem(atPath: temporary)
      throw CommandError(
        path: path, reason: "The file can't be replaced: \(reason). Give the path of a file, in a folder that can be written.")
    }
  }
}
