"""Traditional Chinese catalogue of the console: what was missed, the page Now, one attempt, and the keys."""

OPERATOR_WORDS: dict[str, str] = {
    "Fix the endpoint, then activate the subscription: the page offers to deliver what it missed.": (
        "請修正端點，再啟用訂閱：頁面會提供補送錯過的內容。"
    ),
    "One event passed by while it was disabled.": "停用期間錯過了 1 個事件。",
    "{count} events passed by while it was disabled.": "停用期間錯過了 {count} 個事件。",
    "Deliver these events": "補送這些事件",
    "{count} deliveries were dead-lettered since the failures began.": "自開始失敗以來，有 {count} 筆投遞成為死信。",
    "The events that passed by are being delivered.": "正在補送錯過的事件。",
    # Now
    "1h": "1 小時",
    "24h": "24 小時",
    "7d": "7 天",
    "Range": "範圍",
    "delivered in the last 60 seconds": "最近 60 秒投遞成功",
    "failed attempts in the last 60 seconds": "最近 60 秒失敗的嘗試",
    "dead letters that stand": "尚待處理的死信",
    "Error codes": "錯誤代碼",
    "Host": "主機",
    "Failed": "失敗",
    "Course": "走勢",
    "Begin": "開始",
    # Open work
    "Open work": "未完成的工作",
    "not routed": "尚未分派",
    "due": "已到期、尚未投遞",
    "{count} of this state, the longest waiting first": "此狀態共 {count} 筆，等待最久的在前",
    "Nothing is in this state.": "目前沒有此狀態的項目。",
    # Lists
    "standing": "尚待處理",
    "{count} dead letters, newest first": "{count} 筆死信，由新到舊",
    "{count} finished attempts, newest first": "{count} 次已結束的嘗試，由新到舊",
    # Keys on the keyboard
    "Keys on the keyboard": "鍵盤快速鍵",
    "next and previous row": "下一列、上一列",
    "open the row": "開啟該列",
    "choose the row": "勾選該列",
    "show these keys": "顯示快速鍵",
    "Close": "關閉",
    # One attempt
    "Copy": "複製",
    "Copied": "已複製",
    "Show": "顯示",
    "The request for curl": "以 curl 重現此請求",
    "Secret values come from environment variables, and are left out while these are not set:": (
        "機密值取自環境變數；未設定時會省略："
    ),
    "The body of the request: a CloudEvent that contains the payload.": "請求的內容：包含 payload 的 CloudEvent。",
    "Response headers": "回應標頭",
    "None are stored.": "沒有儲存標頭。",
    # Rules of fields
    "has at most {most} printable characters": "最多 {most} 個可列印的字元。",
    "must be an integer of 1 or more": "必須是 1 以上的整數。",
    "must be an integer from {least} to {most}": "必須是 {least} 到 {most} 的整數。",
    "must be a number": "必須是數字。",
    "must be a time such as {sample}": "必須是時間，例如 {sample}。",
    "must be one of: {choices}": "必須是下列其中之一：{choices}。",
    "must be later than {begin}": "必須晚於 {begin}。",
}
