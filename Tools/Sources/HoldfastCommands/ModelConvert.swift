import Foundation
import HoldfastModelFile
import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// Converts a model to another format.
public enum ModelConvert {
  /// Reads a model in any format and writes it in the format of the second path's extension.
  ///
  /// | extension | output |
  /// |---|---|
  /// | `.xcdatamodeld` | all versions, in Xcode's format |
  /// | `.xcdatamodel` | the named version, or the current one |
  /// | `.json` | the same version, as Holdfast's stores keep their models |
  ///
  /// Converting Xcode's own files preserves everything in them, including settings that don't affect the model. A JSON file is replaced
  /// unless it is a store.
  ///
  /// - Returns: What the input contains and the output lacks, in sentences.
  /// - Throws: ``CommandError``, also if a version to be written can't be read. In that case, nothing is written.
  @discardableResult public static func run(
    _ input: String, to output: String, version: String? = nil
  ) throws(CommandError) -> [String] {
    let source = try ModelSource(path: input)
    let isBundle = output.hasSuffix(".xcdatamodeld") || output.hasSuffix(".xcdatamodeld/")
    let all = isBundle && version == nil ? try source.allVersions() : []
    let chosen = try source.version(version), written = isBundle && version == nil ? all : [chosen]
    do {
      if isBundle {
        let documents = try written.map { ($0.name, try $0.document ?? ModelDocument($0.model)) }
        try ModelBundle.write(Dictionary(uniqueKeysWithValues: documents), currentVersion: chosen.name, to: output)
      } else if output.hasSuffix(".xcdatamodel") || output.hasSuffix(".xcdatamodel/") {
        try ModelBundle.write(try chosen.document ?? ModelDocument(chosen.model), to: output)
      } else if output.hasSuffix(".json") {
        try replace(output, with: JSONModelFile.data(of: chosen.model))
      } else {
        throw CommandError(path: output, reason: "The file extension is unknown. Use .xcdatamodeld, .xcdatamodel or .json.")
      }
    } catch let error as CommandError {
      throw error
    } catch {
      throw CommandError(path: output, reason: "The model can't be written.", cause: error)
    }
    return written.flatMap { version in version.notes.map { "version \(version.name), \($0)" } }
  }

  /// Replaces a file atomically. It keeps the permissions of the old file; only the owner can read and write a new one. A symbolic link
  /// stays, and the file to which it points is replaced. A store isn't replaced, because its objects would be lost.
  private static func replace(_ path: String, with data: Data) throws {
    if FileKind(path) == .file, try StoreFile.isJSONStore(path) {
      throw CommandError(path: path, reason: "The file is a store, which a model doesn't replace. Choose another path.")
    }
    let url = URL(fileURLWithPath: path).resolvingSymlinksInPath()
    let found = try? FileManager.default.attributesOfItem(atPath: url.path)
    // The permissions of a link without a target aren't those of a file.
    let before = found?[.type] as? FileAttributeType == .typeRegular ? found?[.posixPermissions] as? NSNumber : nil
    let temporary = url.deletingLastPathComponent().appendingPathComponent(".\(url.lastPathComponent).\(UUID().uuidString)").path
    let attributes = [FileAttributeKey.posixPermissions: NSNumber(value: 0o600)]
    guard FileManager.default.createFile(atPath: temporary, contents: data, attributes: attributes) else {
      throw CommandError(path: path, reason: "The file can't be created. Check that its folder exists and can be written.")
    }
    // Otherwise, the new name could reach the disk before the contents.
    do {
      let file = try FileHandle(forUpdating: URL(fileURLWithPath: temporary))
      defer { try? file.close() }
      try file.synchronize()
      // Afterwards, because the old file may be read-only.
      if let before { try FileManager.default.setAttributes([.posixPermissions: before], ofItemAtPath: temporary) }
    } catch {
      try? FileManager.default.removeItem(atPath: temporary)
      throw CommandError(path: path, reason: "The file can't be written. Check the disk.", cause: error)
    }
    guard rename(temporary, url.path) == 0 else {
      let reason = String(cString: strerror(errno))
      try? FileManager.default.removeItem(atPath: temporary)
      throw CommandError(
        path: path, reason: "The file can't be replaced: \(reason). Give the path of a file, in a folder that can be written.")
    }
  }
}
